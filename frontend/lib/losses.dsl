# Losses and a metric, always in scope. Losses are one number per example, unless it is said otherwise: mean, weighted_mean and
# their likes make one number of them.

# ---- classes ----

# For softmax_cross_entropy and others: 1, and NaN where a label is none of so many classes.
function of_class(label, classes) {
  id = integers(label)
  return select(id >= 0 and id < classes, 1.0, inf - inf)
}

# For losses, which multiply x by a share: x, but 0 where it is infinite and its share 0, for 0 log 0 is 0.
function counted(x, share) { return select(share == 0 and is_inf(x), 0, x) }

# For losses of classes: are labels probabilities, and not class numbers?
function is_share(label, logits) {
  return rank(label) == rank(logits) and (dtype(label) == f32 or dtype(label) == f64)
}

# For softmax_cross_entropy: class numbers, whose data are checked where they are an input.
function class_numbers(label : integers, classes) { return integers(expect_range(label, 0, classes - 1)) }

# For softmax_cross_entropy: of a probability for each class.
function cross_entropy_of_shares(shifted : T[..., classes], total : T[...],
                                 label : T[..., classes]) {  # class numbers are integers
  return sum(label, axis = -1) * total - sum(label * counted(shifted, label), axis = -1)
}

# For focal_loss: missed^gamma * loss, whose gradient is finite where nothing is missed: with gamma = 0 the loss's, else 0.
function focused(missed, gamma, loss) {
  sure = missed == 0
  weight = select(sure, 1, missed) ^ select(gamma == 0, 1, gamma)
  return select(gamma == 0, 1, select(sure, 0, weight)) * loss
}

# Probabilities for classes, of class numbers: 1 - rate for the label, and `rate` spread evenly over all (Szegedy et al. 2016). NaN
# for a computed label that is no class; in the data of inputs it is an error.
#   input x : f32[B, 3]
#   input label : i32[B]
#   metric loss = mean(softmax_cross_entropy(x, smooth_labels(label, 3, 0.1)))
function smooth_labels(label : integers, classes : int, rate = 0.1, to = f32) {
  return ((1 - rate) * one_hot(label, classes, to) + 1.0 * rate / classes) * expand(cast(of_class(label, classes), to))
}

# -(1 - p)^gamma log p with p = softmax(logits)[label], for class numbers, or for probabilities of labels the mean by them (Lin et
# al. 2017). Of class numbers that are none as softmax_cross_entropy; other classes may be masked by -inf.
#   input x : f32[B, 3]
#   input label : i32[B]
#   metric loss = mean(focal_loss(x, label))
function focal_loss(logits : T[..., classes], label, gamma = 2.0) {
  if not is_share(label, logits) {
    loss = softmax_cross_entropy(logits, label)
    return focused(-expm1(-loss), gamma, loss)
  }
  logs = counted(log_softmax(logits), label)
  return sum(label * focused(-expm1(logs), gamma, -logs), axis = -1)
}

# The same of two classes, by element: label is 0 or 1, as of sigmoid_cross_entropy; alpha, none: 1, is the weight of 1, and 1 - alpha that of 0.
#   input x : f32[B]
#   input label : f32[B]
#   metric loss = mean(sigmoid_focal_loss(x, label, alpha = 0.25))
function sigmoid_focal_loss(logits, label, gamma = 2.0, alpha = none) {
  p = sigmoid(logits)
  missed = label * sigmoid(-logits) + (1 - label) * p
  loss = focused(missed, gamma, sigmoid_cross_entropy(logits, label))
  if alpha == none { return loss }
  return loss * (label * alpha + (1 - label) * (1 - alpha))
}

# max(0, 1 - label * score), by element: label is -1 or 1; anything else is an error in the data of an input, and of 0 and 1 it is
# `2 * label - 1` (Cortes, Vapnik 1995).
#   input x : f32[B]
#   input label : f32[B]
#   metric loss = mean(hinge(x, label))
function hinge(score, label) { return relu(1 - expect_either(label, -1, 1) * score) }

# hinge^2.
#   input x : f32[B]
#   input label : f32[B]
#   metric loss = mean(squared_hinge(x, label))
function squared_hinge(score, label) { return square(hinge(score, label)) }

# 1 - (2 sum(p y) + smooth) / (sum(p) + sum(y) + smooth) along all axes but the first: of masks, whose elements are
# from 0 to 1, which is looked at where they are an input (Milletari, Navab, Ahmadi 2016).
#   input x : f32[B, 4, 4]
#   input mask : f32[B, 4, 4]
#   metric loss = mean(dice_loss(sigmoid(x), mask))
function dice_loss(p, label, smooth = 1.0) {
  both = sum(flatten(p * expect_range(label, 0, 1)), axis = 1)
  return 1 - (2 * both + smooth) / (sum(flatten(p), axis = 1) + sum(flatten(label), axis = 1) + smooth)
}

# ---- numbers ----

# log(cosh(x - y)), by element, which does not overflow, and keeps its digits where x - y is small.
#   input x : f32[B]
#   input y : f32[B]
#   metric loss = mean(log_cosh(x, y))
function log_cosh(x, y) {
  error = x - y
  small = abs(error) < 1
  s = sinh(0.5 * select(small, error, 0))
  return select(small, log1p(2 * s * s), error + softplus(-2 * error) - 0.6931471805599453)
}

# The pinball loss, of which the least lies at a quantile: max(q e, (q - 1) e) with e = y - x (Koenker, Bassett 1978).
#   input x : f32[B]
#   input y : f32[B]
#   metric loss = mean(quantile_loss(x, y, 0.9))
function quantile_loss(x, y, quantile = 0.5) {
  error = y - x
  return max(quantile * error, (quantile - 1) * error)
}

# Counts y of a Poisson distribution whose mean is e^x: e^x - x y, without what does not depend on x.
#   input x : f32[B]
#   input y : f32[B]
#   metric loss = mean(poisson_loss(x, y))
function poisson_loss(x, y) { return exp(x) - counted(x, y) * y }

# -log of the normal density of y, of this mean and e^log_variance, by element.
#   input x : f32[B]
#   input y : f32[B]
#   metric loss = mean(normal_loss(y, x, 0.1 * x))
function normal_loss(y, mean, log_variance) {
  return 0.5 * (log_variance + square(y - mean) * exp(-log_variance)) + 0.9189385332046727
}

# ---- distributions ----

# sum(p log(p / q)) along the last axis, of probabilities; 0 where p is 0.
#   input p : f32[B, 3]
#   input q : f32[B, 3]
#   metric loss = mean(kl_divergence(softmax(p), softmax(q)))
function kl_divergence(p, q) { return sum(xlogy(p, p) - xlogy(p, q), axis = -1) }

# -sum(p log p) along the last axis, of probabilities.
#   input p : f32[B, 3]
#   metric m = mean(entropy(softmax(p)))
function entropy(p) { return -sum(xlogy(p, p), axis = -1) }

# KL of a normal distribution of this mean and e^log_variance from the standard one, summed along the last axis (Kingma, Welling
# 2014, appendix B).
#   input mu : f32[B, 3]
#   metric loss = mean(kl_normal(mu, 0.1 * mu))
function kl_normal(mean, log_variance) {
  return 0.5 * sum(square(mean) + (expm1(log_variance) - log_variance), axis = -1)
}

# mean + e^(log_variance / 2) * noise: a normal number through which gradients flow (Kingma, Welling 2014).
#   input mu : f32[B, 3]
#   predict z = reparameterize(mu, 0.1 * mu)
function reparameterize(mean, log_variance) {
  return mean + exp(0.5 * log_variance) * random_normal(type(mean))
}

# ---- places of things to each other; vectors lie along the last axis ----

# sum(x y) / (|x| |y|), where the product of the norms is taken as `epsilon` at least.
#   input x : f32[B, 3]
#   input y : f32[B, 3]
#   metric m = mean(cosine_similarity(x, y))
function cosine_similarity(x, y, epsilon = 1e-8) {
  lengths = sqrt(max(sum(square(x), axis = -1) * sum(square(y), axis = -1), epsilon * epsilon))
  return sum(x * y, axis = -1) / lengths
}

# max(0, |anchor - positive|^2 - |anchor - negative|^2 + margin) (Schroff, Kalenichenko, Philbin 2015).
#   input a : f32[B, 3]
#   input p : f32[B, 3]
#   metric loss = mean(triplet_loss(a, p, 2 * p))
function triplet_loss(anchor, positive, negative, margin = 1.0) {
  near = sum(square(anchor - positive), axis = -1)
  far = sum(square(anchor - negative), axis = -1)
  return relu(near - far + margin)
}

# Of two vectors a distance apart: its square where `same` is 1, the square of what it lacks to the margin where it is 0; other
# numbers are an error in the data of an input (Hadsell, Chopra, LeCun 2006).
#   input x : f32[B, 3]
#   input same : f32[B]
#   metric loss = mean(contrastive_loss(norm(x + 1, axis = 1), same))
function contrastive_loss(distance, same, margin = 1.0) {
  return expect_range(same, 0, 1) * square(distance) + (1 - same) * square(relu(margin - distance))
}

# Each row's own partner among those of the whole batch, on all towers: -log softmax(u @ transpose(v) / temperature) (van den Oord,
# Li, Vinyals 2018). As a loss to train: the mean over the rows.
#   input x : f32[B, 3]
#   var w : f32[3, 3] = normal()
#   train mean(info_nce(l2_normalize(x @ w), l2_normalize(x))) with sgd()
function info_nce(u, v, temperature = 0.1) {
  logits = u @ transpose(v) / temperature
  return logsumexp(logits, axis = 1) - sum(u * v, axis = 1) / temperature
}

# ---- sequences ----

# -log of the probability of a sequence of labels, which are spread over the steps with blanks between them (Graves et al. 2006),
# by its forward recursion over logarithms. logits [B, steps, classes]; label [B, n], of integers; lengths [B] and label_lengths
# [B], of integers, none: all; what stands behind them may be anything. Inf, and no gradient, where the labels do not fit into the
# steps; 0 of no labels in no steps. Lengths that the shapes have no room for, and labels that are the blank or no class, are errors
# in the data of inputs (labels: without label_lengths); computed ones make the row's loss NaN, and its gradient.
#   input x : f32[B, 5, 3]
#   input label : i32[B, 2]
#   predict loss = ctc_loss(x, 1 + label)
function ctc_loss(logits : T[N, L, classes], label : integers, lengths : integers = none, label_lengths : integers = none,
                  blank : int = 0) {
  never = -1e30
  n = shape(label)[1]
  states = 2 * n + 1
  there = cut(logits, 2, blank, blank + 1)
  known = class_labels(label, classes, blank) if label_lengths == none else label
  end = integers(expect_range(lengths, 0, L)) if lengths != none else L + 0 * iota(i32[N])
  count = integers(expect_range(label_lengths, 0, n)) if label_lengths != none else n + 0 * iota(i32[N])
  id = integers(known)
  legal = id >= 0 and id < classes and id != blank or iota(dtype(count)[n]) >= expand(count)
  sound = end >= 0 and end <= L and count >= 0 and count <= n and all(legal, axis = 1)
  sure = cast(select(sound, 1, inf - inf), T)
  logs = log_softmax(logits) * reshape(sure, [N, 1, 1])
  blanks = blank + 0 * iota(i32[N, states], axis = 1)
  pairs = reshape(stack([blanks[:, 0:n], cast(id, i32)], axis = 2), [N, states - 1])
  kind = concat([pairs, blanks[:, 0:1]], axis = 1)
  at = iota(i32[states])
  before = concat([blanks[:, 0:2], kind[:, 0:states - 2]], axis = 1)
  may_skip = kind != blank and kind != before and at >= 2
  scores = take_along(logs, broadcast(expand(kind, 1), [N, L, states]), 2)
  first = select(broadcast(at < 2, [N, states]), scores[:, 0], never)
  ways = select(expand(end) > 0, first, cast(select(at < 1, 0.0, never), T))
  none_there = broadcast(cast(broadcast(never, [2]), T), [N, 2])
  live = expand(end) > 1 + iota(dtype(end)[L - 1])
  if L > 1 {
    scan ways over score in scores[:, 1:], lives in live {
      one = concat([none_there[:, 0:1], ways[:, 0:states - 1]], axis = 1)
      two = select(may_skip, concat([none_there, ways[:, 0:states - 2]], axis = 1), never)
      next = max(logsumexp(stack([ways, one, two], axis = 2)), never) + score
      ways = select(expand(lives), next, ways)
    }
  }
  last = take_along(ways, expand(2 * count), 1)
  last_but_one = select(expand(count) > 0, take_along(ways, max(expand(2 * count - 1), 0), 1), never)
  total = logsumexp(concat([last, last_but_one], axis = 1))
  fails = total <= 0.5 * never
  return select(fails, inf, -select(fails, cast(0, T), total)) * sure
}

# For ctc_loss: labels, of which all count, as classes but the blank.
function class_labels(label, classes, blank) {
  low = 1 if blank == 0 else 0
  high = classes - 2 if blank == classes - 1 else classes - 1
  return expect_range(label, low, high) if low <= high else label
}

# ---- metrics ----

# For auc: the weights of rows that are 1, and of those that are 0, above each of so many thresholds from 0 to 1; all of
# them are above the first, none above the last. NaN where a score or a label is not from 0 to 1.
function weights_above(scores : T[...S], label : U[...S], thresholds : several, weights) {
  at = iota(i32[thresholds])
  one = cast(expect_range(label, 0, 1), T)
  right = scores >= 0 and scores <= 1 and one >= 0 and one <= 1
  wrong = select(right, 0 * scores, inf)
  above = at == 0 or (expand(scores) > cast(at, T) / (thresholds - 1) and at < thresholds - 1)
  true_weight = one * weights + wrong
  false_weight = (1 - one) * weights + wrong
  axes = []
  for i in 0..rank(scores) { axes = axes + [i] }
  hits = sum(select(above, expand(true_weight), 0), axis = axes)
  falls = sum(select(above, expand(false_weight), 0), axis = axes)
  return [hits, falls]
}

# The area under the ROC curve: how often a row whose label is 1, or true, has a higher score than one whose label is 0, of
# scores from 0 to 1, as `sigmoid(logits)`. As Keras' AUC: rows are counted above each of so many thresholds from 0 to 1,
# between which the curve is straight; so it adds up over batches. A label between 0 and 1 counts by so much as a 1, and as a 0 by
# the rest; others are an error in the data of an input, and a computed one makes it NaN. NaN where all labels are the same, or a
# score is not from 0 to 1.
#   input logits : f32[B]
#   input label : i32[B]
#   metric auc = auc(sigmoid(logits), label)
function auc(scores : T[...S], label : U[...S], thresholds : several = 200, weights = 1) {
  hits, falls = weights_above(scores, label, thresholds, weights)
  high = hits / hits[0]
  wide = falls / falls[0]
  n = thresholds
  return 0.5 * sum((wide[0:n - 1] - wide[1:n]) * (high[0:n - 1] + high[1:n]))
}

# The area under the curve of precision over recall, which says more than auc where few labels are 1. As Keras' AUC of the
# curve "PR": between two thresholds rows that are 1 and rows that are 0 come at a rate of their own, so that precision is
# no straight line (Davis and Goadrich, 2006). Labels as of auc. NaN where no label is 1, or a score is not from 0 to 1.
#   input logits : f32[B]
#   input label : i32[B]
#   metric auc = auc_pr(sigmoid(logits), label)
function auc_pr(scores : T[...S], label : U[...S], thresholds : several = 200, weights = 1) {
  hits, falls = weights_above(scores, label, thresholds, weights)
  n = thresholds
  all = hits + falls
  low = all[1:n]
  wide = all[0:n - 1] - low
  more = hits[0:n - 1] - hits[1:n]
  rate = select(wide > 0, more / select(wide > 0, wide, 1), 0)
  begin = hits[1:n] - rate * low
  curved = begin * log(select(low > 0, all[0:n - 1] / select(low > 0, low, 1), 1))
  return sum(rate * (more + curved)) / hits[0]
}

# SPDX-License-Identifier: Apache-2.0
