"""Writes tests/checkpoints/: tiny random models as folders of Hugging Face, and what `transformers` computes with them.

The tests only read the files, so they need neither PyTorch nor `transformers`. To make the files again:

    python -m venv peers
    peers/bin/pip install torch==2.13.0 transformers==5.23.0 tokenizers==0.23.3 safetensors pillow numpy
    peers/bin/python -m tools.transformers_reference [name ...]

Each folder has what a published one has: config.json, generation_config.json, model.safetensors (or shards with their
index), tokenizer.json, preprocessor_config.json. Beside them stand `expected.npz` (arrays: inputs, logits, the hidden
states after each layer) and `expected.json` (texts and their ids, what `generate` gives with which settings).
`cases.py` has the table of models, `vocabularies.py` trains their tokenizers, `filling.py` gives them weights in which
no two tensors could be exchanged unnoticed, `running.py` computes what is expected and `folders.py` writes.

Some folders keep to forms that older versions wrote and that most published files have (`rope_theta` beside
`rope_scaling`, GPT-2 without prefix and with its masks, BERT with `gamma` and `beta`); every folder is read back by
`transformers` before anything is computed. Tokens of searches are kept only if float64 finds the same ones.
"""
