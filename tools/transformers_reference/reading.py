"""Whether `transformers` reads what `wl.models.save_pretrained` wrote, with the same logits.

The two live in different environments, so this is done in two steps, with a folder in between:

    python -m tools.transformers_reference.writing saved         in the project's environment
    peers/bin/python -m tools.transformers_reference.reading saved
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found]  # not in the project's environment
import transformers  # type: ignore[import-not-found]  # not in the project's environment

TOLERANCE = 1e-5


def main() -> None:
    """Compare all folders, and fail at the first that differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("saved", type=Path, help="what tools.transformers_reference.writing wrote")
    for folder in sorted(path for path in parser.parse_args().saved.iterdir() if path.is_dir()):
        name = json.loads((folder / "config.json").read_text())["architectures"][0]
        model, report = getattr(transformers, name).from_pretrained(
            folder, attn_implementation="eager", output_loading_info=True
        )
        model.config.use_cache = False  # RWKV's has no place for as many channels as its time mixing may have
        assert not report["missing_keys"], report
        assert not report["mismatched_keys"], report
        with np.load(folder / "logits.npz") as arrays:
            inputs = {key: torch.from_numpy(value) for key, value in arrays.items() if key != "logits"}
            wanted = arrays["logits"]
        with torch.no_grad():
            found = _logits(model.eval()(**inputs)).numpy()
        error = float(np.abs(found - wanted).max())
        print(f"{folder.name:20} {name:35} {error:.1e}")
        assert error < TOLERANCE, folder


def _logits(out: Any) -> torch.Tensor:
    for name in ("prediction_logits", "logits", "last_hidden_state"):
        if hasattr(out, name):
            return out[name]
    raise AssertionError(list(out))


if __name__ == "__main__":
    main()
