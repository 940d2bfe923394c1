"""SkyRL: a generator that hands over what tito recorded for a step."""

from pathlib import Path

from skyrl.train.generators.base import GeneratorInterface
from tito_rl import read, to_skyrl


class TitoGenerator(GeneratorInterface):
    """`play(input_batch)` is yours: it runs the trials, materializes them and returns the samples file."""

    def __init__(self, play):
        self.play = play

    async def generate(self, input_batch, disable_tqdm=False):
        return to_skyrl(read(Path(await self.play(input_batch))))
