"""The shapes of `benchmarks/products.py`: data without imports, so that every peer reads the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MatrixProduct:
    """(m, k) times (k, n) in float32, `batch` of them; a factor that is transposed lies in memory the other way."""

    m: int
    k: int
    n: int
    batch: int = 0
    x_transposed: bool = False
    y_transposed: bool = False

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        lead = (self.batch,) if self.batch else ()
        x = (self.k, self.m) if self.x_transposed else (self.m, self.k)
        y = (self.n, self.k) if self.y_transposed else (self.k, self.n)
        return (*lead, *x), (*lead, *y)

    @property
    def operations(self) -> int:
        return 2 * max(self.batch, 1) * self.m * self.k * self.n


SQUARE = (64, 100, 128, 256, 512, 1000, 1024, 2048)
FEW = (1, 2, 3, 4, 6, 8, 12, 16)
WEIGHTS = ((768, 768), (512, 2048), (1024, 1024), (2048, 2048), (3072, 768), (768, 50257))
OTHERS = {
    "tall": (4096, 128, 128),
    "taller": (20000, 64, 64),
    "wide": (2048, 192, 768),
    "cora": (2708, 1433, 64),
    "mlp": (128, 784, 256),
    "lstm": (32, 128, 512),
    "thin": (1000, 300, 10),
    "long": (64, 8192, 64),
    "odd": (333, 517, 241),
}

NAMED: dict[str, MatrixProduct] = (
    {f"square_{n}": MatrixProduct(n, n, n) for n in SQUARE}
    | {f"rows_{m}": MatrixProduct(m, 1024, 1024) for m in FEW}
    | {f"row_{k}x{n}": MatrixProduct(1, k, n) for k, n in WEIGHTS}
    | {name: MatrixProduct(*sizes) for name, sizes in OTHERS.items()}
    | {
        "row_2048x2048_nt": MatrixProduct(1, 2048, 2048, y_transposed=True),
        "rows_8_nt": MatrixProduct(8, 1024, 1024, y_transposed=True),
        "rows_16_nt": MatrixProduct(16, 1024, 1024, y_transposed=True),
        "square_512_nt": MatrixProduct(512, 512, 512, y_transposed=True),
        "square_512_tn": MatrixProduct(512, 512, 512, x_transposed=True),
        "square_1024_tn": MatrixProduct(1024, 1024, 1024, x_transposed=True),
        "cora_tn": MatrixProduct(1433, 2708, 64, x_transposed=True),
        "mlp_tn": MatrixProduct(784, 128, 256, x_transposed=True),
        "batch_64": MatrixProduct(64, 64, 64, batch=64),
        "batch_128": MatrixProduct(128, 32, 128, batch=96),
        "batch_rows": MatrixProduct(4, 64, 256, batch=128),
    }
)
GRID: dict[str, MatrixProduct] = {f"product_{name}": case for name, case in NAMED.items()}  # "mlp" is a training step
