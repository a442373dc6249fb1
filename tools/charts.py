"""What the pages of results have in common: tables in Markdown, and plots that are the same file for the same data."""


def table(columns, rows):
    """Lines of a table with a blank one behind it; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(columns) + " |", "|---" + "|---:" * (len(columns) - 1) + "|"]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


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
