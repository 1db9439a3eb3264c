# SPDX-License-Identifier: Apache-2.0
"""TensorFlow on a model of cases.py: peer_tensorflow.py CASE graph|xla|mirrored f32|bf16 THREADS. A step is one
tf.function; mirrored is MirroredStrategy on as many logical CPUs as threads. bfloat16 is Keras's policy
mixed_bfloat16."""
import itertools
import os
import sys

import tensorflow as tf

from cases import DECAY, MOBILE, TRANSFORMERS, arguments, batches, method
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from rounds import serve

keras, layers = tf.keras, tf.keras.layers


def normed(x, filters, size=3, stride=1):
    return layers.BatchNormalization()(layers.Conv2D(filters, size, stride, padding="same")(x))


def perceptron(x):
    return layers.Dense(512, "relu")(layers.Dense(512, "relu")(x))


def lenet(x):
    x = layers.Reshape((28, 28, 1))(layers.Rescaling(1 / 255)(x))
    x = layers.MaxPool2D()(layers.Conv2D(6, 5, padding="same", activation="relu")(x))
    x = layers.Flatten()(layers.MaxPool2D()(layers.Conv2D(16, 5, activation="relu")(x)))
    return layers.BatchNormalization()(layers.Dense(84, "relu")(layers.Dense(120, "relu")(x)))


def resnet(x):
    x = layers.ReLU()(normed(x, 16))
    for filters in 16, 32, 64:
        for i in range(3):
            stride = 2 if i == 0 and filters > 16 else 1
            y = normed(layers.ReLU()(normed(x, filters, 3, stride)), filters)
            x = layers.ReLU()(layers.Add()([y, layers.Conv2D(filters, 1, stride, padding="same")(x) if stride > 1 else x]))
    return layers.GlobalAveragePooling2D()(x)


def mobilenet(x):
    x = layers.ReLU()(normed(x, 32))
    for filters, stride in MOBILE:
        x = layers.ReLU()(layers.BatchNormalization()(layers.DepthwiseConv2D(3, stride, padding="same")(x)))
        x = layers.ReLU()(normed(x, filters, 1))
    return layers.GlobalAveragePooling2D()(x)


def unet(x):
    def two(x, filters):
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        return x
    a = two(x, 16)
    b = two(layers.MaxPool2D()(a), 32)
    y = two(layers.MaxPool2D()(b), 64)
    for beside, filters in (b, 32), (a, 16):
        y = two(layers.Concatenate()([layers.Conv2DTranspose(filters, 2, 2)(y), beside]), filters)
    return y


class Places(layers.Layer):
    def build(self, shape):
        self.places = self.add_weight(shape=shape[1:], initializer="uniform")

    def call(self, x):
        return x + tf.cast(self.places, x.dtype)


class Attention(layers.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.qkv, self.out, self.heads = layers.Dense(3 * width, use_bias=False), layers.Dense(width), heads

    def call(self, x):
        length, width = x.shape[1:]
        heads = tf.reshape(self.qkv(x), (-1, length, 3, self.heads, width // self.heads))
        q, k, v = (tf.transpose(heads[:, :, i], (0, 2, 1, 3)) for i in range(3))
        scores = tf.matmul(q, k, transpose_b=True) * (width // self.heads)**-0.5
        seen = tf.linalg.band_part(tf.ones((length, length), bool), -1, 0)
        y = tf.nn.softmax(tf.where(seen, scores, tf.cast(-1e9, scores.dtype))) @ v
        return self.out(tf.reshape(tf.transpose(y, (0, 2, 1, 3)), (-1, length, width)))


def transformer(x, t):
    table = layers.Embedding(t.words, t.width)
    x = Places()(table(x))
    for _ in range(t.blocks):
        x = layers.Add()([x, Attention(t.width, t.heads)(layers.LayerNormalization(epsilon=1e-5)(x))])
        wide = layers.Dense(4 * t.width, lambda v: keras.activations.gelu(v, approximate=False))
        y = wide(layers.LayerNormalization(epsilon=1e-5)(x))
        x = layers.Add()([x, layers.Dense(t.width)(y)])
    x = layers.LayerNormalization(epsilon=1e-5)(x)
    return layers.Lambda(lambda v: tf.matmul(v, tf.cast(table.embeddings, v.dtype), transpose_b=True))(x) if t.tied \
        else layers.Dense(t.words)(x)


def lstm(x):
    return layers.LSTM(128)(x)


def bag(x):
    return layers.GlobalAveragePooling1D()(layers.Embedding(65536, 64)(x))


MODELS = {"perceptron": perceptron, "lenet": lenet, "resnet": resnet, "mobilenet": mobilenet, "unet": unet,
          "lstm": lstm, "bag": bag}


def build(case):
    (_, dtype, shape, _), (_, _, _, classes) = case.inputs
    image = keras.Input(shape, dtype=dtype)
    if case.name in TRANSFORMERS:
        logits = transformer(image, TRANSFORMERS[case.name])
    else:
        x = MODELS[case.name.split("-")[0]](image)
        logits = layers.Conv2D(classes, 1)(x) if case.name == "unet" else layers.Dense(classes)(x)
    name, rate = method(case)
    sgd = keras.optimizers.SGD(rate, 0.9 if name == "momentum" else 0.0)
    update = {"adam": keras.optimizers.Adam(rate), "adamw": keras.optimizers.AdamW(rate, weight_decay=DECAY)}.get(name, sgd)
    model = keras.Model(image, logits)
    update.build(model.trainable_variables)
    return model, update


def main():
    case, how, bf16, threads = arguments(sys.argv)
    tf.config.threading.set_intra_op_parallelism_threads(1 if how == "mirrored" else threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    if how == "mirrored":
        one = tf.config.LogicalDeviceConfiguration()
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], [one] * threads)
        strategy = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(threads)])
    else:
        strategy = tf.distribute.get_strategy()
    if bf16:
        keras.mixed_precision.set_global_policy("mixed_bfloat16")
    with strategy.scope():
        model, update = build(case)
    per_row = 1
    for size in case.inputs[1][2]:
        per_row *= size

    def tower(x, y):
        with tf.GradientTape() as tape:
            logits = tf.cast(model(x, training=True), tf.float32)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(y, tf.int32), logits)
            loss = tf.reduce_sum(losses) / (case.batch * per_row)
        variables = model.trainable_variables
        update.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    @tf.function(jit_compile=how == "xla")
    def whole(x, y):
        return tower(x, y)

    @tf.function
    def divided(x, y):
        return strategy.reduce("SUM", strategy.run(tower, (x, y)), axis=None)

    data, rows = itertools.cycle(batches(case)), case.batch // threads

    def step():
        x, y = next(data)
        if how != "mirrored":
            return float(whole(tf.constant(x), tf.constant(y)))
        parts = [strategy.experimental_distribute_values_from_function(
            lambda c, a=a: tf.constant(a[c.replica_id_in_sync_group * rows:][:rows])) for a in (x, y)]
        return float(divided(*parts))
    serve(step, f"TensorFlow {tf.__version__}")


main()
