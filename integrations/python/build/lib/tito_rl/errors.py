"""The two ways in which this package stops: the input is wrong, or a trainer cannot express it."""


class TitoError(Exception):
    """An input that cannot be used. The message is one line: what happened, where, and what to do."""


class CannotExpress(TitoError):
    """A trainer cannot express these samples. Nothing is dropped or changed to make them fit.

    ``trainer`` is the trainer's name, ``problems`` one line per rule that the samples break.
    """

    def __init__(self, trainer: str, problems: list[str]) -> None:
        self.trainer = trainer
        self.problems = problems
        super().__init__(f"{trainer} cannot express these samples: " + "; ".join(problems))
