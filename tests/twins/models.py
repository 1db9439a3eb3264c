# SPDX-License-Identifier: Apache-2.0
"""All models that are trained here and in JAX."""

from chains import clipped, lamb, slow
from layers import ctc, experts, messages, recommender, segments, sequences, vae, word2vec
from residual import residual, residual_f32
from statements import cell, contrastive, frozen, gan, heat, penalty, sharpness, siamese, tied


def all_models(count):
    return [make(count) for make in (siamese, gan, frozen, tied, cell, contrastive, heat, penalty, clipped, lamb, slow,
                                    vae, recommender, experts, ctc, word2vec, messages, sequences, segments, sharpness,
                                    residual, residual_f32)]
