"""What the pages of results have in common: tables in Markdown, and plots that are the same file for the same data."""


def table(columns, rows):
    """Lines of a table with a blank one behind it; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(columns) + " |", "|---" + "|---:" * (len(columns) - 1) + "|"]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def target(words, reached, ok):
    """A row of a table of targets; `ok` is None where nothing was measured."""
    return [words, reached if ok is not None else "-", "not measured" if ok is None else "reached" if ok else "missed"]


def target_of_all(words, items, least):
    """The same of several figures that are each to be at least so high; items: (name, figure)."""
    items = list(items)
    if not items:
        return target(words, "", None)
    good = sum(figure >= least for _, figure in items)
    name, worst = min(items, key=lambda item: item[1])
    return target(words, f"{good} of {len(items)}; least {worst:.2f} ({name})", good == len(items))


def targets_table(rows):
    return table(["target", "measured", "verdict"], rows)


def load_pyplot():
    """pyplot, drawing SVG; None, with a word about it, where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed (tools/requirements-plots.txt): no plots")
        return None
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "skein"
    from matplotlib import pyplot

    return pyplot


def save(figure, path):
    """Writes and closes a figure; its file's name."""
    from matplotlib import pyplot

    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path.name
