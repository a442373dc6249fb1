"""The texts and the points of scripts/bench_encoders: the same for Skein and for the engines of tools/encoder_peers.py."""
import pathlib
import statistics
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHORT_WORDS, LONG_WORDS = 5, 80
FIRST_WORD = 170  # behind a drawing, whose words have many tokens: MiniLM reads at most 256
# name -> (kind of text, texts in a request, texts in all)
POINTS = {"short texts, one at a time": ("short", 1, 8), "long texts, one at a time": ("long", 1, 8),
          "8 long texts in a request": ("long", 8, 8), "32 long texts in a request": ("long", 32, 32)}
CALIBRATION = 64


def texts():
    """By kind: pieces of the project's own pages."""
    words = (ROOT / "docs/ARCHITECTURE.md").read_text().split()
    return {kind: [" ".join(words[first:first + length]) for first in range(FIRST_WORD, FIRST_WORD + 17 * count, 17)]
            for kind, length, count in (("short", SHORT_WORDS, 8), ("long", LONG_WORDS, 32))}


def calibration():
    """Pieces of other pages, of 5 to 80 words: for engines that choose ranges of activations."""
    words = [word for page in sorted((ROOT / "docs").glob("[a-z]*.md")) for word in page.read_text().split()]
    return [" ".join(words[101 * i:101 * i + (5, 15, 40, 80)[i % 4]]) for i in range(CALIBRATION)]


def rate(run, count, sample_s):
    """Of `count` texts a second: the median of two runs or more that take so long in all, after one."""
    took = []
    while len(took) < 3 or sum(took[1:]) < sample_s:
        begin = time.perf_counter()
        run()
        took.append(time.perf_counter() - begin)
    return count / statistics.median(took[1:])


def measured(embed, sample_s):
    """Texts/s by point; embed(texts) answers one request."""
    asked = texts()

    def run(kind, batch, count):
        for first in range(0, count, batch):
            embed(asked[kind][first:first + batch])

    return {point: rate(lambda: run(*shape), shape[2], sample_s) for point, shape in POINTS.items()}


def all_texts():
    """Those whose embeddings are compared."""
    return [text for kind in texts().values() for text in kind]
