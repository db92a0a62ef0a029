"""From probabilities to decisions: calibration, costs of mistakes, prediction sets."""

__all__: list[str] = []
