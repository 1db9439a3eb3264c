# SPDX-License-Identifier: Apache-2.0
"""What Keras, PyTorch and others call things that are here, by another name: what an AttributeError says of them."""

MODEL = {
    "fit": "model.train(data, epochs=N), where data is a dict: {\"x\": x, \"label\": label}",
    "fit_generator train_on_batch": "model.run(\"train\", batch) does one step, and model.train({\"x\": dgc.Source(…)}) reads rows from a function",
    "test_on_batch predict_on_batch forward": "model.run(\"eval\", batch), model.run(\"predict\", batch)",
    "score test": "model.evaluate(data)",
    "transform predict_proba decision_function": "model.predict(data), which gives what `predict` of the model says, by name",
    "get_weights set_weights weights trainable_weights trainable_variables parameters named_parameters state_dict load_state_dict":
        "model.variables: a mapping by name, which reads copies and assigns values",
    "save_weights save_model": "model.save(path)",
    "load_weights load_model": "model.restore(path), or of some variables init_from=path",
    "summary": "print(model.variables) has names, types and shapes; model.emit(\"graph\") the whole, and `dgc compile MODEL --emit summary` a table",
    "compile": "dgc.compile(text, **options) has made it already: loss, optimizer and metrics stand in the model",
    "add": "layers stand in the model: `h = nn.dense(x, units = 64, activation = relu)`",
    "layers": "model.variables has what layers hold, and model.emit(\"graph\") what they compute",
    "optimizer loss metrics": "they stand in the model: `train mean(loss) with adam(rate = 1e-3)`, `metric accuracy = …`",
    "eval": "nothing: evaluate and predict run the model as it is then; model.evaluate(data) measures",
    "to cuda cpu": "devices=\"gpu:0\" of dgc.compile and dgc.load",
    "zero_grad backward step": "nothing: `train loss with adam(rate = 1e-3)` in the model, and model.train(data)",
    "history": "model.train returns the progress of each epoch: epochs[-1].loss",
    "plot plot_model": "model.emit(\"html\"), or the model itself in a notebook",
}

MODULE = {
    "optimizers optim": "an optimizer stands in the model: `train loss with adam(rate = 1e-3)`; `dgc doc` lists them",
    "layers nn": "layers stand in the model: `use nn`, and `h = nn.dense(x, units = 64)`; `dgc doc nn` lists them",
    "losses metrics": "losses and metrics stand in the model: `train mean(softmax_cross_entropy(logits, label)) with adam(rate = 1e-3)`",
    "activations initializers regularizers": "these are functions in the model: `nn.dense(x, units = 64, activation = relu)`; `dgc doc` lists them",
    "callbacks": "model.train(data, progress=function): it is called with a Progress, and ends the training by False",
    "distribute strategy": "strategy=\"mirrored\" of dgc.compile and dgc.load; docs/tf_distribute.md has the others",
    "data utils": "data is a dict of arrays, files and dgc.Source(shape, dtype, read)",
    "Sequential Module Input": "a model is a text: dgc.compile(\"model m { … }\"), or a file: dgc.load(path)",
    "load_model models": "dgc.load(path) compiles a model, and model.restore(path) reads its variables",
    "tensor Tensors array Variable": "numpy's arrays are what goes in and comes out",
    "random manual_seed set_seed": "seed=7 of dgc.compile and dgc.load",
}


def said(words, whose, name):
    """What the AttributeError says."""
    here = next((here for theirs, here in words.items() if name in theirs.split()), None)
    return "%s has no %s%s" % (whose, name, ": " + here if here else "")
