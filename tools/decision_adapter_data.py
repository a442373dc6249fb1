"""Makes the training and validation examples of tools/train_decision_adapter.py.

Most are own yes/no questions in groups. Of the others, a third is about sentiment and uses the rated sentences of
VADER's data sets; the rest comes from the makers of default_model_data.py and from own sentences. A hash of a text,
or of a group's name, decides its split.
"""
import hashlib
import pathlib
import random
from dataclasses import dataclass

import decision_adapter_pairs as pairs
import decision_adapter_words as sets
import default_model_data as toy
from default_model_data import Question
from vader_items import ground_truth

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
SETS = ("movieReviewSnippets", "tweets", "nytEditorialSnippets")  # the Amazon set is for the test alone


def rated(folder, name):
    """[(text, mean rating of people in [-4, 4])]"""
    text = ground_truth(folder, f"{name}_GroundTruth.txt")
    rows = [line.split("\t") for line in text.split("\n")]
    return [(row[2].strip().replace("''", '"'), float(row[1])) for row in rows if len(row) >= 3]


def yes_no_groups(path=pathlib.Path(__file__).with_name("decision_adapter_groups.txt")):
    """[(name, questions, [(text, marks)])]; marks: one of y, n and - for each question."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "#":
            found.append((rest, [], []))
        elif kind == "Q":
            found[-1][1].append(rest)
        elif kind == "T":
            marks, _, text = rest.partition(" | ")
            found[-1][2].append((text, marks))
            if len(marks) != len(found[-1][1]) or set(marks) - set("yn-"):
                raise ValueError(f"{path}: the marks of {text!r} do not fit its questions")
    return found


def split_of(text):
    return "valid" if hashlib.sha256(text.encode()).digest()[0] < 26 else "train"


# -- prompts ---------------------------------------------------------------------------------------
def option_text(name, description):
    return f"{name} ({description})" if name and description else name or description


def answer_text(option):
    return option[0] or option[1]


def words_head(subject, question):
    """What the questions of a text share: a document of relevance is part of its question."""
    return f"Query: {subject}\n" if question.kind == "relevance" else f"Text: {subject}\n"


def words_tail(question, cue=""):
    """Ends where the answer begins, which is a space and the option's own text."""
    if question.kind == "relevance":
        return (f"Document: {question.instructions}\n"
                "Question: Is the document relevant to the query?\nAnswer:")
    if cue:
        return f"{cue}:"
    options = ""
    if question.kind != "predicate":
        options = "Options: " + "; ".join(option_text(*o) for o in question.options) + "\n"
    return f"Question: {question.instructions}\n{options}Answer:"


def chat_prompt(message):
    """The model's chat template with one message of the user."""
    return CHAT_HEAD + message + CHAT_TAIL


CHAT_HEAD = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n"
CHAT_TAIL = "<|im_end|>\n<|im_start|>assistant\n"


def letters_head(subject, question):
    """The prompts of docs/decisions.md in the model's chat template."""
    return CHAT_HEAD + (toy.relevance_head if question.kind == "relevance" else toy.decision_head)(subject)


def letters_tail(question):
    return question.text + CHAT_TAIL


CUES = {"sentiment": ["Sentiment", "Opinion", "Tone", "Mood"], "emotion": ["Emotion", "Feeling"],
        "topic": ["Topic", "Subject", "Category"], "language": ["Language"],
        "intent": ["Intent", "Category", "Request"], "ticket": ["Intent", "Category", "Team"],
        "spam": ["Label", "Kind"], "urgency": ["Urgency", "Priority"], "score": ["Rating", "Level"],
        "stars": ["Rating", "Stars"]}


@dataclass
class Tail:
    """A question behind the head: what is read, the answer, and the form of the prompt."""
    text: str
    answer: str
    question: Question
    form: str


@dataclass
class Row:
    """A text and its questions; every tail is read behind the head alone."""
    head: str
    tails: list


# -- sentiment -------------------------------------------------------------------------------------
# Negative and positive names; names of the middle; wordings by set ("" for all).
NAMES = [("negative", "positive")] * 6 + [
    ("bad", "good"), ("unfavorable", "favorable"), ("dislikes it", "likes it"), ("unhappy", "happy"),
    ("Negative", "Positive"), ("critical", "praising"), ("displeased", "pleased"),
    ("against it", "in favor of it"), ("disappointed", "satisfied"), ("con", "pro"),
    ("thumbs down", "thumbs up"), ("not recommended", "recommended"), ("complaint", "compliment"),
    ("a negative opinion", "a positive opinion"), ("no", "yes"), ("worse", "better")]
MIDDLES = ["neutral", "mixed", "neither", "neutral", "no clear opinion", "undecided"]
FIVE = [("very negative", "negative", "neutral", "positive", "very positive"),
        ("terrible", "bad", "okay", "good", "great"), ("1 star", "2 stars", "3 stars", "4 stars", "5 stars"),
        ("1", "2", "3", "4", "5"), ("very unhappy", "unhappy", "neutral", "happy", "very happy"),
        ("awful", "poor", "average", "good", "excellent"), ("0", "1", "2", "3", "4")]
DESCRIPTIONS = [("the writer is unhappy", "criticism, complaint or bad news", "the writer does not like it"),
                ("the writer is happy", "praise, joy or good news", "the writer likes it")]
ASK = {
    "": toy.w.ASK["sentiment"] + toy.w.lines("""
        Is the text positive or negative?
        Is the writer's opinion good or bad?
        What is the sentiment?
        What is the overall sentiment of this text?
        Does the text sound favorable or unfavorable?
        What does the writer feel about it?
        Is it praise or criticism?"""),
    "movieReviewSnippets": toy.w.lines("""
        Is this review positive or negative?
        What is the reviewer's verdict?
        What does the critic think of the film?
        Would the reviewer recommend it?
        Did the reviewer like it?
        Is the review favorable?
        What is the opinion of the reviewer?
        How did they like it?"""),
    "tweets": toy.w.lines("""
        What is the mood of the tweet?
        How is the writer doing?
        Is the author in a good or a bad mood?
        Is the post positive or negative?"""),
    "nytEditorialSnippets": toy.w.lines("""
        Is the passage positive or negative?
        What tone does the sentence have?
        Is it good news or bad news?""")}
YES_GOOD = {
    "": toy.w.ASK["is_positive"] + toy.w.lines("""
        Is this text positive?
        Does the writer say something good?
        Is the sentiment of the text positive?
        Is the opinion favorable?
        Is the tone of the text positive?"""),
    "movieReviewSnippets": toy.w.lines("""
        Does the reviewer recommend it?
        Did the reviewer like it?
        Is the review positive?
        Is the reviewer satisfied?
        Is it worth the money, according to the writer?
        Would the writer buy it again?
        Is the critic impressed?"""),
    "tweets": toy.w.lines("""
        Is the writer in a good mood?
        Is the writer pleased?
        Is something nice happening to the writer?"""),
    "nytEditorialSnippets": toy.w.lines("""
        Is this good news?
        Does the passage approve of what it describes?""")}
YES_BAD = {
    "": toy.w.ASK["is_negative"] + toy.w.lines("""
        Is this text negative?
        Does the writer say something bad?
        Is the sentiment of the text negative?
        Is the opinion unfavorable?
        Is the tone of the text negative?"""),
    "movieReviewSnippets": toy.w.lines("""
        Does the reviewer advise against it?
        Did the reviewer dislike it?
        Is the review negative?
        Does the reviewer find fault with it?
        Was it a disappointment for the writer?
        Is the critic bored or annoyed?"""),
    "tweets": toy.w.lines("""
        Is the writer in a bad mood?
        Is the writer upset?
        Is something going wrong for the writer?"""),
    "nytEditorialSnippets": toy.w.lines("""
        Is this bad news?
        Does the passage criticize something?""")}


class Maker:
    """Rows of one split; `texts` maps a name of SETS to its rated texts of that split."""

    def __init__(self, split, seed, folder):
        self.split, self.rng = split, random.Random(f"{split}-{seed}-adapter")
        self.toy = toy.Maker(split, f"{seed}-adapter")
        self.groups = [g for g in yes_no_groups() if split_of(g[0]) == split]
        self.levels = {}  # text: 0..4
        self.bands = {}  # (set, side): texts; side -1, 0, 1, and (set, "star", level)
        for name in SETS:
            for text, score in rated(folder, name):
                if split_of(text) == split and len(text) < 400:
                    if abs(score) >= 0.5:
                        self.bands.setdefault((name, 1 if score > 0 else -1), []).append(text)
                    if abs(score) < 0.3:
                        self.bands.setdefault((name, 0), []).append(text)
                    level = self.levels[text] = sum(score > edge for edge in (-1.9, -0.5, 0.5, 1.9))
                    self.bands.setdefault((name, "star", level), []).append(text)

    def chance(self, p):
        return self.rng.random() < p

    def any(self, items):
        return self.rng.choice(items)

    def own(self, sentences):
        part = [s for s in sentences if split_of(s) == self.split]
        return self.any(part or sentences)

    def wording(self, table, name):
        return self.any(table[name] if self.chance(0.5) else table[""])

    # Each of these asks about a text of the label given. It returns (a function of a label that gives a
    # text, labels, a function of a label that gives the question): worked examples share the question.
    def sentiment_choice(self, name, given):
        low, high = self.any(NAMES)
        sides, options = [-1, 1], [(low, ""), (high, "")]
        if given == 0 or self.chance(0.25):
            sides, options = [-1, 1, 0], options + [(self.any(MIDDLES), "")]
        if self.chance(0.15):
            options[:2] = [(n, self.any(DESCRIPTIONS[i])) for i, n in enumerate((low, high))]
        wording = self.wording(ASK, name)
        if low == "no":
            wording = self.any(["Does the writer like it?", "Is the writer happy?", "Is it praised?",
                                "Would the writer recommend it?", "Is the text positive?"])
        order = self.rng.sample(range(len(sides)), len(sides))
        options = [options[i] for i in order]
        return (lambda side: self.any(self.bands[name, side]), sides, lambda side: Question(
            "sentiment", "choice", wording, options, order.index(sides.index(side))))

    def sentiment_predicate(self, name, _):
        good = self.chance(0.5)
        wording = self.wording(YES_GOOD if good else YES_BAD, name)
        sides = [-1, 1, -1, 1, -1, 1, 0] if name != "movieReviewSnippets" else [-1, 1]
        return (lambda side: self.any(self.bands[name, side]), sides, lambda side: Question(
            "sentiment yes/no", "predicate", wording, [("yes", ""), ("no", "")],
            0 if side == (1 if good else -1) else 1))

    def sentiment_levels(self, name, _):
        names = self.any(FIVE)
        descriptions = [""] * 5
        if names[0] in "01" and self.chance(0.7):
            descriptions = self.any(pairs.STAR_DESCRIPTIONS)
        elif self.chance(0.1):
            names, descriptions = [""] * 5, self.any(pairs.STAR_DESCRIPTIONS)
        wording = self.toy.pick(toy.w.ASK["satisfaction"])
        options = list(zip(names, descriptions))
        return (lambda level: self.any(self.bands[name, "star", level]), [0, 1, 2, 3, 4],
                lambda level: Question("stars", "score", wording, options, level))

    def labelled(self, task, given):
        """A choice or a predicate on a labelled set of own sentences."""
        table, asks, yes_asks = self.LABELLED[task]
        labels = list(table)

        def text(label):
            return self.own(table[label][2])

        def called(label):
            return label if self.chance(0.6) else self.any(table[label][0])
        if self.chance(0.4):
            asked = given if self.chance(0.5) else self.any([x for x in labels if x != given])
            wording = self.any(yes_asks).replace("{t}", called(asked))
            others = self.rng.sample([x for x in labels if x != asked], 3)
            return text, [asked] * 3 + others, lambda label: Question(
                task + " yes/no", "predicate", wording, [("yes", ""), ("no", "")], 0 if label == asked else 1)
        others = [x for x in labels if x != given]
        chosen = [given] + self.rng.sample(others, min(len(others), self.any([1, 2, 3, 4, 5, 6])))
        self.rng.shuffle(chosen)
        described = self.chance(0.3)
        options = [(called(x), table[x][1] if described else "") for x in chosen]
        wording = self.any(asks)
        return text, chosen, lambda label: Question(task, "choice", wording, options, chosen.index(label))

    def spam(self, _):
        names = self.any(toy.w.SPAM_NAMES)
        order = self.any([[0, 1], [1, 0]])
        described = self.chance(0.25)
        options = [(names[i], toy.w.SPAM_DESCRIPTIONS[i][0] if described else "") for i in order]
        wording = self.any(toy.w.ASK["spam"])
        asked = self.any(toy.w.ASK["is_spam"])
        text = lambda spam: self.own(sets.SPAM[spam])
        if self.chance(0.6):
            return text, [True, False], lambda spam: Question(
                "spam yes/no", "predicate", asked, [("yes", ""), ("no", "")], 0 if spam else 1)
        return text, [True, False], lambda spam: Question(
            "spam", "choice", wording, options, order.index(0 if spam else 1))

    def urgency(self, given):
        wording = self.any(toy.w.ASK["urgency"])
        if given != 1 and self.chance(0.4):
            asked = self.any(toy.w.ASK["is_urgent"])
            return (lambda n: self.own(pairs.URGENCY[n]), [0, 2], lambda n: Question(
                "urgency yes/no", "predicate", asked, [("yes", ""), ("no", "")], 0 if n == 2 else 1))
        names = self.any(pairs.URGENCY_NAMES)
        described = pairs.URGENCY_DESCRIPTIONS if self.chance(0.4) else [""] * 3
        return (lambda n: self.own(pairs.URGENCY[n]), [0, 1, 2], lambda n: Question(
            "urgency", "score", wording, list(zip(names, described)), n))

    def stars(self, given):
        names, described = self.any(pairs.STAR_NAMES), [""] * 5
        if self.chance(0.3):
            described = self.any(pairs.STAR_DESCRIPTIONS)
        wording = self.toy.pick(toy.w.ASK["satisfaction"])
        text = lambda n: self.own(pairs.STARS[n])
        draw = self.rng.random()
        if given != 2 and draw < 0.4:
            good = self.chance(0.5)
            asked = self.wording(YES_GOOD if good else YES_BAD, "movieReviewSnippets")
            return text, [0, 1, 3, 4], lambda n: Question(
                "sentiment yes/no", "predicate", asked, [("yes", ""), ("no", "")],
                0 if good == (n > 2) else 1)
        if given != 2 and draw < 0.6:
            pair = self.any(NAMES[:10])
            order = self.any([[0, 1], [1, 0]])
            asked = self.any(ASK[""])
            return text, [0, 1, 3, 4], lambda n: Question(
                "sentiment", "choice", asked, [(pair[i], "") for i in order], order.index(int(n > 2)))
        return text, [0, 1, 2, 3, 4], lambda n: Question(
            "stars", "score", wording, list(zip(names, described)), n)

    # -- texts with several questions ---------------------------------------------------------------
    def sentiment_pack(self, count):
        name = self.any(["movieReviewSnippets"] * 11 + ["tweets"] * 5 + ["nytEditorialSnippets"] * 3)
        side = self.any([-1, 1] if name == "movieReviewSnippets" else [-1, 1] * 3 + [0])
        text = self.any(self.bands[name, side])
        questions = []
        for _ in range(count):
            draw = self.rng.random()
            if draw < 0.6 and side:
                questions.append(self.sentiment_predicate(name, side)[2](side))
            elif draw < 0.92:
                questions.append(self.sentiment_choice(name, side)[2](side))
            else:
                questions.append(self.sentiment_levels(name, side)[2](self.levels[text]))
        if self.chance(0.05):
            questions.append(self.toy.mention(text))
        return text, questions

    def fact_pack(self, count):
        text, true, false = self.own_entry(pairs.FACTS)
        asked = [(q, 0) for q in true.split("; ")] + [(q, 1) for q in false.split("; ")]
        if self.chance(0.4):  # another passage as a distraction
            more = self.own_entry(pairs.FACTS)[0]
            text = self.any([f"{text} {more}", f"{more} {text}"]) if more != text else text
        return text, [Question("fact yes/no", "predicate", q, [("yes", ""), ("no", "")], answer)
                      for q, answer in self.rng.sample(asked, min(count + 1, len(asked)))]

    def yes_no_pack(self, count):
        """As many questions of either answer, where there are as many."""
        text, true, false = self.own_entry(pairs.YES_NO)
        sides = [self.rng.sample(side.split("; "), k=len(side.split("; "))) for side in (true, false)]
        asked = [(side[i], answer) for i in range(3) for answer, side in enumerate(sides) if i < len(side)]
        return text, [Question("property yes/no", "predicate", q, [("yes", ""), ("no", "")], answer)
                      for q, answer in asked[:count + 1]]

    def group_pack(self, _):
        """At most four questions of either answer."""
        _, questions, texts = self.any(self.groups)
        text, marks = self.any(texts)
        asked = []
        for answer, mark in enumerate("yn"):
            own = [q for q, m in zip(questions, marks) if m == mark]
            asked += [(q, answer) for q in self.rng.sample(own, min(4, len(own)))]
        return text, [Question("group yes/no", "predicate", q, [("yes", ""), ("no", "")], answer)
                      for q, answer in self.rng.sample(asked, len(asked))]

    def own_entry(self, entries):
        part = [e for e in entries if split_of(e[0]) == self.split]
        return self.any(part or entries)

    def relevance_pack(self, count):
        query, document, near = self.own_entry(pairs.QUERIES)
        documents = [document, near] + [self.own_entry(pairs.QUERIES)[self.any([1, 1, 2])]
                                        for _ in range(count - 2)]
        self.rng.shuffle(documents)
        return query, [Question("relevance", "relevance", d, [("yes", ""), ("no", "")],
                                0 if d == document else 1) for d in documents]

    def toy_pack(self, kind, count):
        """Texts of the default model's maker; `kind` is one of its kinds of text."""
        if kind == "relevance":
            example = self.toy.relevance(count)
            return example.subject, example.questions
        text, make = getattr(self.toy, kind)()
        return text, [self.any(make)() for _ in range(count)]

    def labels_of(self, source):
        fixed = {"spam": [True, False], "urgency": [0, 1, 2], "stars": [0, 1, 2, 3, 4]}
        return fixed.get(source) or list(self.LABELLED[source][0])

    def ask(self, source, label):
        return getattr(self, source)(label) if source not in self.LABELLED else self.labelled(source, label)

    SOURCES = ["sentiment"] * 34 + ["stars"] * 9 + ["emotion"] * 7 + ["topic"] * 6 + ["language"] * 3 \
        + ["intent"] * 7 + ["spam"] * 10 + ["urgency"] * 8 + ["fact"] * 10 + ["yes_no"] * 10 + ["relevance"] * 5 \
        + ["toy review", "toy mail", "toy ticket", "toy people", "toy people", "toy relevance"] \
        + ["group"] * 200
    LABELLED = {
        "emotion": (sets.EMOTIONS, toy.w.lines("""
            Which emotion does the text express?
            What does the writer feel?
            Which feeling fits best?
            What is the main emotion?
            Name the emotion of the writer.
            Which emotion is strongest here?"""), toy.w.lines("""
            Does the text express {t}?
            Is {t} the main emotion?
            Is the feeling here {t}?""")),
        "topic": (sets.TOPICS, toy.w.ASK["topic"], toy.w.ASK["is_topic"]),
        "language": (sets.LANGUAGES, toy.w.lines("""
            Which language is the text written in?
            What language is this?
            In which language is the text?
            Identify the language.
            Which language does the writer use?"""), toy.w.lines("""
            Is the text written in {t}?
            Is this {t}?
            Is the language of the text {t}?""")),
        "intent": (sets.INTENTS, toy.w.ASK["category"] + toy.w.lines("""
            What does the customer want?
            What is the intent of the message?
            Why does the customer write?
            Which kind of request is this?"""), toy.w.ASK["is_category"])}

    def row(self):
        source = self.any(self.SOURCES)
        count = self.any([3, 4, 4, 5])
        if source.startswith("toy "):
            return self.finish(*self.toy_pack(source.removeprefix("toy "), count))
        if source in ("fact", "relevance", "yes_no", "group"):
            return self.finish(*getattr(self, source + "_pack")(count))
        if self.chance(0.06):
            return self.with_examples(source)
        if source == "sentiment":
            return self.finish(*self.sentiment_pack(count))
        label = self.any(self.labels_of(source))
        asked = [self.ask(source, label) for _ in range(count)]
        return self.finish(asked[0][0](label), [question(label) for _, _, question in asked])

    def with_examples(self, source):
        """One question behind one or two worked examples of it."""
        if source == "sentiment":
            label, name = self.any([-1, 1]), self.any(SETS)
            make = self.sentiment_predicate if self.chance(0.5) else self.sentiment_choice
            text, labels, question = make(name, label)
        else:
            label = self.any(self.labels_of(source))
            text, labels, question = self.ask(source, label)
        before = ""
        for _ in range(self.any([1, 2])):
            other = self.any(labels)
            asked = question(other)
            before += (words_head(text(other), asked) + words_tail(asked) + " "
                       + answer_text(asked.options[asked.answer]) + "\n\n")
        asked = question(label)
        return Row(before + words_head(text(label), asked), [self.tail(asked)])

    def tail(self, question):
        described = any(d for _, d in question.options)
        cue = ""
        if self.chance(0.2) and question.task in CUES and not described and question.options[0][0] != "no":
            cue = self.any(CUES[question.task])
        return Tail(words_tail(question, cue), " " + answer_text(question.options[question.answer]), question,
                    "cue" if cue else "words")

    def finish(self, subject, questions):
        if self.chance(0.12):
            return Row(letters_head(subject, questions[0]), [
                Tail(letters_tail(q), q.labels[q.answer], q, "letters") for q in questions])
        return Row(words_head(subject, questions[0]), [self.tail(q) for q in questions])
