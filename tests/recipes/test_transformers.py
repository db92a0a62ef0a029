"""Transformers by name: what they learn from texts and pairs of texts, what they write, and what they refuse."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from wonderland import recipes
from wonderland.cli import main
from wonderland.optim.by_name import muon
from wonderland.recipes import MODELS, Settings, build
from wonderland.recipes.settings import TrainSettings
from wonderland.recipes.tasks import TASKS
from wonderland.recipes.tasks.masked import CLS, MASK, SEP, Hiding
from wonderland.recipes.tasks.pairs import BOS, EOS, PAD, read_pairs

TEXT = "the cat sat on the mat, and the dog lay on the log. " * 30
SMALL = ["model.embed_dim=16", "model.num_heads=2", "steps=2", "epochs=1", "batch_size=4"]


def trained(folder, model, data, *changes):
    settings = Settings.of(model=model, data=str(data), changes=[*SMALL, *changes])
    return recipes.run(settings, folder, progress=False, png=False)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def language_run(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("runs") / "gpt"
    changes = ["steps=60", "lr=0.01", "model.depth=1", "data.context=16", "model.positions=learned"]
    return trained(folder, "gpt", text, *changes)


# --- settings


def test_steps_are_counted_altogether(tmp_path, text):
    done = trained(tmp_path / "run", "gpt", text, "steps=7", "epochs=3", "model.depth=1", "data.context=16")
    assert len(done.history) == 3
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert any("6" in name for name in names)  # three epochs of two steps


def test_who_counts_epochs_means_passes_through_the_data():
    assert Settings.of(model="gpt", data="a.txt").training(MODELS["gpt"].train).steps > 0
    assert Settings.of(model="gpt", data="a.txt", changes=["epochs=2"]).training(MODELS["gpt"].train).steps == 0
    both = Settings.of(model="gpt", data="a.txt", changes=["epochs=2", "steps=9"]).training(MODELS["gpt"].train)
    assert (both.epochs, both.steps) == (2, 9)
    with pytest.raises(wl.errors.InputError, match=r"train\.steps"):
        TrainSettings(epochs=5, steps=3).check()


def test_muon_leaves_tables_and_vectors_to_adamw():
    model = wl.models.GPT(11, 8, 16, 2, 1)
    layers, rest = muon(model, 0.01, 0.1).groups
    assert (layers["use_muon"], rest["use_muon"]) == (True, False)
    assert set(rest.params) == {"tokens.weight", "positions.weight"}
    vectors = wl.optim.Muon(model, 0.01).state_size() - muon(model, 0.01, 0.0).state_size()
    assert vectors < 0  # two moments for each number of the tables


# --- models


@pytest.mark.parametrize("name", ["gpt", "llama", "bert"])
def test_models_of_a_text_give_scores_of_tokens(name):
    model = build({"name": name, "embed_dim": 16, "num_heads": 2, "depth": 1}, (12,), 7)
    assert model(np.ones((3, 12), np.int64)).shape == (3, 12, 7)
    TrainSettings(**MODELS[name].train).check()


@pytest.mark.parametrize("positions", ["learned", "rotary", "sinusoidal", "alibi", "relative", ""])
def test_gpt_has_positions_of_all_kinds(positions):
    wl.random.seed(0)
    settings = {"name": "gpt", "embed_dim": 16, "num_heads": 2, "depth": 1, "positions": positions}
    model = build(settings, (12,), 7)
    rng = np.random.default_rng(0)
    for p in model.parameters():  # what starts small makes small differences
        p.assign(wl.asarray((p.numpy() + rng.normal(0, 0.3, p.shape)).astype(np.float32)))
    tokens = np.tile(np.arange(7), 2)[None, :12]
    whole = model(tokens).numpy()
    cache, steps = model.new_cache(1, 12), []
    for place in range(12):
        logits, cache = model.step(tokens[:, place], cache)
        steps.append(logits.numpy())
    np.testing.assert_allclose(np.stack(steps, 1), whole, rtol=1e-4, atol=1e-4)
    same = model(tokens[:, [*range(8), 10, 9, 8, 11]]).numpy()[:, -1]
    # without positions the last token sees a bag of tokens
    assert np.allclose(same, whole[:, -1], rtol=1e-3, atol=1e-3) == (positions == "")


def test_seq2seq_does_not_see_padding_or_what_comes():
    wl.random.seed(0)
    about = {"source_length": 5, "start_token": BOS}
    model = build({"name": "seq2seq", "embed_dim": 16, "num_heads": 2}, (9,), 11, about)
    x = np.array([[5, 6, 7, 0, 0, BOS, 8, 9, 4]])
    same = model.net(x[:, :3], x[:, 5:]).numpy()
    np.testing.assert_allclose(model(x).numpy(), same, atol=1e-5)
    later = x.copy()
    later[0, -1] = 10
    np.testing.assert_allclose(model(later).numpy()[:, :3], same[:, :3], atol=1e-5)


# --- language


@pytest.mark.book("A5-02", name="wonderland train --model gpt")
def test_a_language_model_reports_perplexity_and_bits(language_run):
    found = language_run.results
    assert found["bits_per_character"] == pytest.approx(np.log2(found["perplexity"]))
    assert found["perplexity"] < 12  # of 19 characters
    assert recipes.evaluate(language_run.folder)["perplexity"] == pytest.approx(found["perplexity"], rel=1e-5)


def test_every_token_of_the_test_part_counts_once(text):
    data = TASKS["language"].prepare({"name": str(text), "context": 16}, 0.1, 0)
    _, y = data.test
    counted = y != -100
    ids = wl.text.Tokenizer.from_str(data.about["tokenizer"]).encode(TEXT)
    test = ids[len(ids) - len(ids) // 10 :]
    n = int(counted.sum())
    assert len(test) - 1 - 8 < n <= len(test) - 1
    np.testing.assert_array_equal(y[counted], test[1 : n + 1])
    assert counted[1:, 8:].all()
    assert not counted[1:, :8].any()
    assert counted[0].all()


def test_the_report_shows_samples_attention_and_positions(language_run):
    page = (Path(language_run.folder) / "report.html").read_text()
    for part in ("Results", "perplexity", "Samples", "Probabilities", "Attention", "block 1, head 2", "Positions"):
        assert part in page


def test_what_is_streamed_is_what_is_written(language_run, capsys):
    folder = language_run.folder
    settings = {"top_k": 5, "seed": 3}
    text = recipes.generate(folder, "the ", 20, **settings)
    assert text.startswith("the ")
    assert len(text) == 24
    assert "".join(recipes.stream(folder, "the ", 20, **settings)) == text
    told = []
    assert recipes.generate(folder, "the ", 20, callback=told.append, **settings) == text
    assert "the " + "".join(told) == text
    command = ["generate", folder, "--prompt", "the ", "--length", "20", "--top-k", "5", "--seed", "3"]
    assert main(command) == 0
    assert capsys.readouterr().out == text + "\n"
    assert main([*command, "--stream"]) == 0
    assert capsys.readouterr().out == text + "\n"
    assert main([*command, "--stream", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "".join(json.loads(line)["piece"] for line in lines) == text
    assert main([*command, "--quantize", "int8"]) == 0
    told = capsys.readouterr()
    assert len(told.out) == len(text) + 1
    assert "int8 weights: " in told.err
    assert main([*command, "--quantize", "int8", "--activations", "int8"]) == 0
    assert "int8 weights and int8 activations: " in capsys.readouterr().err
    assert main([*command, "--activations", "int8"]) == 2
    assert "activations='int8' without quantize" in capsys.readouterr().err
    assert main([*command, "--quantize", "int5"]) == 2
    assert "dtype='int5'" in capsys.readouterr().err


def test_stops_beams_and_filters(language_run, capsys):
    folder = language_run.folder
    text = recipes.generate(folder, "the ", 60, temperature=0)
    stop = text[6:8]
    assert recipes.generate(folder, "the ", 60, temperature=0, stop=stop) == text[: text.index(stop, 4)]
    assert main(["generate", folder, "--prompt", "the ", "--length", "8", "--beams", "2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["text"]) == 12
    for more, message in (
        (["--beams", "2", "--top-k", "3"], "top_k would do nothing"),
        (["--beams", "2", "--stop", "a"], "beams look at tokens"),
        (["--beams", "2", "--stream"], "beams know the best text when all is written"),
    ):
        assert main(["generate", folder, *more]) == 2
        assert message in capsys.readouterr().err


def test_ctrl_c_ends_a_stream(language_run, monkeypatch, capsys):
    def interrupted(*args, **settings):
        yield "the "
        raise KeyboardInterrupt

    monkeypatch.setattr(recipes, "stream", interrupted)
    assert main(["generate", language_run.folder, "--stream"]) == 130
    assert capsys.readouterr().out == "the "


def test_a_folder_that_is_no_run_and_no_model(tmp_path, capsys):
    assert main(["generate", str(tmp_path)]) == 2
    assert "has no trained model" in capsys.readouterr().err
    (tmp_path / "config.json").write_text("{}")
    assert main(["generate", str(tmp_path)]) == 2
    assert "tokenizer.json" in capsys.readouterr().err


def test_a_published_folder(tmp_path, monkeypatch, capsys):
    tokenizer = wl.text.CharTokenizer.train("abcd ", special_tokens=["[BOS]", "[EOS]"])
    tokenizer.save(tmp_path / "tokenizer.json")
    (tmp_path / "config.json").write_text("{}")
    model = wl.models.Llama(tokenizer.vocab_size, 16, 2, 1).eval()
    monkeypatch.setattr(wl.models, "from_pretrained", lambda folder: model, raising=False)
    text = wl.generation.generate_text(model, tokenizer, "ab", 9, temperature=0)
    assert main(["generate", str(tmp_path), "--prompt", "ab", "--length", "9", "--temperature", "0"]) == 0
    assert capsys.readouterr().out == text + "\n"
    model = wl.models.BERT(tokenizer.vocab_size, 8, 16, 2, 1)
    assert main(["generate", str(tmp_path), "--prompt", "ab"]) == 2
    assert "BERT does not write texts" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content, message",
    [
        (b"caf\xe9 " * 100, r"no text in UTF-8: byte 0xe9 in line 1"),
        (b"a\0b" * 100, "zero byte"),
        (b"", "empty"),
        (b"short", "too few"),
    ],
)
@pytest.mark.parametrize("model", ["gpt", "bert"])
def test_files_that_are_no_texts(tmp_path, content, message, model):
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    with pytest.raises(wl.errors.WonderlandError, match=message):
        trained(tmp_path / "run", model, path)


# --- masked language models


def test_hidden_tokens_are_others_each_time(text):
    data = TASKS["masked"].prepare({"name": str(text), "tokenizer": "char", "context": 20}, 0.1, 0)
    x, y = data.train
    rng = np.random.default_rng(1)
    again, targets = Hiding(data.about)((x, y), rng)
    plain = np.where(y == -100, x, y)
    np.testing.assert_array_equal(np.where(targets == -100, again, targets), plain)
    assert not np.array_equal(targets, y)
    share = (targets != -100).mean()
    assert 0.1 < share < 0.2
    assert 0.7 < (again[targets != -100] == MASK).mean() < 0.9
    assert (plain[:, 0] == CLS).all()
    assert (plain[:, -1] == SEP).all()
    assert (targets[:, [0, -1]] == -100).all()


def test_bert_fills_in_what_is_hidden(tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text(TEXT * 8)  # so that many tokens of the test part are hidden
    size = ["model.embed_dim=32", "model.depth=1", "data.context=16", "data.stride=1", "batch_size=32"]
    done = trained(tmp_path / "run", "bert", text, *size, "steps=500", "epochs=4", "lr=0.01")
    losses = [record["loss"] for record in done.history.records]
    assert losses[-1] < 0.5 * losses[0]
    assert done.results["perplexity"] == pytest.approx(np.exp(done.results["loss"]), rel=1e-4)
    assert 0.6 < done.results["token_accuracy"] <= 1
    page = (tmp_path / "run" / "report.html").read_text()
    for part in ("Filled in", "hidden tokens", 'class="right" title=', "block 1, head 2", "Positions"):
        assert part in page
    (tmp_path / "lines.txt").write_text("the cat [MASK] on the mat\n\nthe dog lay on the [MASK]\n")
    found = recipes.predict(tmp_path / "run", {"name": str(tmp_path / "lines.txt")})
    assert len(found.predictions) == len(found.confidence) == 2
    assert "mask" not in found.predictions[0].lower()
    assert main(["generate", str(tmp_path / "run")]) == 2
    assert "wonderland predict" in capsys.readouterr().err
    (tmp_path / "lines.txt").write_text("nothing hidden\n")
    with pytest.raises(wl.errors.InputError, match=r"has no \[MASK\]"):
        recipes.predict(tmp_path / "run", {"name": str(tmp_path / "lines.txt")})


# --- from one text to another


@pytest.mark.book("A5-02", name="wonderland train --model seq2seq")
def test_seq2seq_learns_to_reverse(tmp_path, capsys):
    rng = random.Random(0)
    words = ["".join(rng.choice("abcd") for _ in range(rng.randint(1, 4))) for _ in range(900)]
    (tmp_path / "pairs.tsv").write_text("\n\n".join(f"{word}\t{word[::-1]}" for word in words))
    size = ["model.embed_dim=32", "model.encoder_layers=1", "model.decoder_layers=1"]
    changes = [*size, "steps=400", "lr=0.006", "batch_size=32"]
    done = trained(tmp_path / "run", "seq2seq", tmp_path / "pairs.tsv", *changes)
    assert done.results["whole_output_accuracy"] > 0.5
    folder = str(tmp_path / "run")
    (tmp_path / "new.txt").write_text("ab\ncba\n")
    assert main(["predict", folder, "--data", str(tmp_path / "new.txt")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "prediction"
    assert len(lines) == 3
    assert main(["generate", folder, "--prompt", "ab"]) == 0
    assert capsys.readouterr().out.strip() == lines[1]
    assert main(["generate", folder, "--prompt", "ab", "--stream"]) == 0
    assert capsys.readouterr().out.strip() == lines[1]
    assert main(["generate", folder, "--prompt", "ab", "--beams", "3"]) == 0
    assert main(["generate", folder]) == 2
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Outputs" in page
    assert "Right" in page


def test_pairs_are_side_by_side_and_no_source_is_in_two_parts(tmp_path):
    path = tmp_path / "pairs.tsv"
    words = [a + b for a in "abcde" for b in "abcd"]  # so many that each letter is in the first part
    path.write_text("".join(f"{word}\t{word}!\n" for word in words * 3))
    data = TASKS["pairs"].prepare({"name": str(path)}, 0.2, 0)
    s, t = data.about["source_length"], data.about["target_length"]
    assert (s, t, data.shape) == (2, 4, (6,))
    x, y = data.train
    assert (x[:, s] == BOS).all()
    np.testing.assert_array_equal(x[:, s + 1 :], np.where(y[:, :-1] == EOS, PAD, y[:, :-1]))
    assert (y[:, -1] == EOS).all()
    assert data.validation is not None
    rows = [{tuple(row[:s]) for row in part[0].tolist()} for part in (data.train, data.validation, data.test)]
    assert sum(map(len, rows)) == len(set.union(*rows)) == 20


@pytest.mark.parametrize(
    "name, content, options",
    [
        ("a.tsv", "source\ttarget\n", {}),
        ("a.tsv", "", {}),
        ("a.tsv", "left\tright\tmore\n", {"source": "left", "target": "right"}),
        ("a.csv", "id,left,right\n", {"source": "left", "target": "right"}),
        ("a.tsv", "", {"source": 0, "target": 1}),
    ],
)
def test_columns_by_name_and_by_place(tmp_path, name, content, options):
    sign = "\t" if name.endswith("tsv") else ","
    first = ["x"] * content.startswith("id")
    last = ["z"] * ("more" in content)
    rows = [sign.join([*first, f'a "q" {i}' if sign == "\t" else f"a{i}", f"b{i}", *last]) for i in range(6)]
    (tmp_path / name).write_text(content + "\n".join(rows) + "\n")
    sources, targets = read_pairs({"name": str(tmp_path / name), **options})
    assert targets == [f"b{i}" for i in range(6)]
    assert sources[5] == ('a "q" 5' if sign == "\t" else "a5")


@pytest.mark.parametrize(
    "content, options, message",
    [
        ("a\tb\nc\n" * 5, {}, "line 2 has 1 columns, line 1 has 2"),
        ("a\tb\nc\t\n" * 5, {}, "line 2 has no target"),
        ("a\tb\n \td\n" * 5, {}, "line 2 has no source"),
        ("a\tb\tc\n" * 9, {}, "3 columns in line 1, and no names of two"),
        ("a\n" * 9, {}, "1 columns"),
        ("a\tb\n" * 9, {}, "different sources"),
        ("\n\n", {}, "is empty"),
        ("a\tb\n", {}, "too few"),
        ("x\ty\n" + "a\tb\n" * 9, {"source": "z"}, "there is no column 'z'"),
        ("a\tb\nc\td\ne\tf\ng\th\ni\tj\n", {"tokenizer": "letters"}, "no tokenizer"),
        ("a\tb\n" * 9, {"lenght": 3}, "no option data.lenght"),
    ],
)
def test_tables_that_are_no_pairs(tmp_path, content, options, message):
    (tmp_path / "pairs.tsv").write_text(content)
    with pytest.raises(wl.errors.WonderlandError, match=message):
        TASKS["pairs"].prepare({"name": str(tmp_path / "pairs.tsv"), **options}, 0.1, 0)


def test_pairs_in_another_encoding(tmp_path):
    (tmp_path / "pairs.tsv").write_bytes("a\tb\nc\tné\n".encode("latin1"))
    with pytest.raises(wl.errors.FileError, match="byte 0xe9 in line 2"):
        read_pairs({"name": str(tmp_path / "pairs.tsv")})


@pytest.mark.book("A5-02", name="wonderland train")
def test_the_four_quadrants_of_tasks_have_templates():
    """Outputs of a length that depends on the input or not, by one pass or drawn token by token."""
    tasks = {name: entry.task for name, entry in MODELS.items()}
    assert tasks["text_cnn"] == "texts"  # one class of each text
    assert tasks["bert"] == "masked"  # a class of each token
    assert tasks["gpt"] == "language"  # a text of any length, drawn
    assert tasks["seq2seq"] == "pairs"  # a text of another length, drawn given the first
    shape, about = (12,), {"vocabulary": 9, "source_length": 7, "start_token": BOS}
    tokens = np.ones((3, 12), np.int64)
    outputs = {
        name: build({"name": name}, shape, 9, about)(tokens).shape for name in ("text_cnn", "bert", "gpt", "seq2seq")
    }
    assert outputs == {"text_cnn": (3, 9), "bert": (3, 12, 9), "gpt": (3, 12, 9), "seq2seq": (3, 5, 9)}
