"""Makes the texts, questions and answers on which the default model is trained and measured.

Everything comes from the lists of default_model_words.py and a seeded random generator; the prompts
are those of docs/decisions.md, to the byte. A Maker of split "train", "valid" or "test" uses only its
own part of the sentences and question wordings, so a test text is never a filled-in training sentence.
"""
import json
import random
import re
from dataclasses import dataclass, field

import default_model_words as w

LETTERS = [chr(65 + i) for i in range(26)]
CODES = [a + b for a in LETTERS for b in LETTERS]
THINK = "<think>\n\n</think>\n\n"
BEFORE = "<|im_start|>user\n"
AFTER = "<|im_end|>\n<|im_start|>assistant\n" + THINK


# The texts of docs/decisions.md.
def decision_head(text, instructions=""):
    return (instructions + "\n\n" if instructions else "") + f"Text:\n{text}\n\n"


def relevance_head(query, instructions=""):
    return (instructions + "\n\n" if instructions else "") + f"Query:\n{query}\n\n"


def relevance_question(document):
    return (f"Document:\n{document}\n\nQuestion: Is the document relevant to the query?\n"
            "Answer with yes or no only.")


def option_line(label, name, description):
    name = "" if name == label else name
    line = f"{label}." + (f" {name}" if name else "")
    if description:
        line += (": " if name else " ") + description
    return line + "\n"


def question_text(kind, instructions, options, labels):
    """options: (name, description or ""); of a predicate (yes, ...), (no, ...)."""
    text = f"Question: {instructions}\n"
    for label, (name, description) in zip(labels, options):
        if kind != "predicate":
            text += option_line(label, name, description)
        elif description:
            text += f"{name}: {description}\n"
    closing = {"predicate": "yes or no", "score": "one digit",
               "choice": "one letter" if len(options) <= 26 else "one label"}[kind]
    return text + f"Answer with {closing} only."


def labels_of(kind, options):
    if kind == "predicate":
        return ["yes", "no"]
    if kind == "choice":
        return (LETTERS + CODES)[:len(options)]
    names = [name for name, _ in options]
    if all(re.fullmatch("[0-9]", name) for name in names) and len(set(names)) == len(names):
        return names
    return [str(i) for i in range(len(options))]


@dataclass
class Question:
    """`task` is what the card calls it, `kind` predicate, choice, score or relevance."""
    task: str
    kind: str
    instructions: str  # of relevance: the document
    options: list  # [(name, description)]
    answer: int  # index into options

    @property
    def labels(self):
        return ["yes", "no"] if self.kind == "relevance" else labels_of(self.kind, self.options)

    @property
    def text(self):
        """What the prompt has after the head."""
        if self.kind == "relevance":
            return relevance_question(self.instructions)
        return question_text(self.kind, self.instructions, self.options, self.labels)


@dataclass
class Example:
    """One text (of relevance: a query) and the questions (documents) that share it."""
    subject: str
    instructions: str
    is_query: bool
    questions: list = field(default_factory=list)

    @property
    def head(self):
        return (relevance_head if self.is_query else decision_head)(self.subject, self.instructions)


class Maker:
    def __init__(self, split, seed):
        self.split = split
        self.rng = random.Random(f"{split}-{seed}")
        self.long_texts = 0.05  # their share
        self.options_max = 8  # of the questions that only read labels

    def chance(self, p):
        return self.rng.random() < p

    def any(self, items):
        return self.rng.choice(items)

    def pick(self, sentences):
        """One of this split's part of a list: of every five the last is test, the one before it valid."""
        keep = {"train": (0, 1, 2), "valid": (3,), "test": (4,)}[self.split]
        part = [s for i, s in enumerate(sentences) if i % 5 in keep]
        return self.any(part or sentences)

    def fill(self, sentence, **given):
        """Puts a value in each {place}: the one given, one of a list given, or a word of that name."""
        def value(match):
            found = given.get(match.group(1)) or w.WORDS[match.group(1)]
            return found if isinstance(found, str) else self.any(found)
        return re.sub(r"\{(\w+)\}", value, sentence)

    # -- questions ---------------------------------------------------------------------------------
    def predicate(self, task, wording, yes, descriptions=None):
        options = [("yes", ""), ("no", "")]
        if descriptions and self.chance(0.2):
            options = [("yes", descriptions[0]), ("no", descriptions[1])]
        return Question(task, "predicate", wording, options, 0 if yes else 1)

    def choice(self, task, wording, options, answer):
        """options: (name, description); answer: index before shuffling."""
        order = list(range(len(options)))
        self.rng.shuffle(order)
        return Question(task, "choice", wording, [options[i] for i in order], order.index(answer))

    def score(self, task, wording, names, level):
        """`names`: five descriptions, lowest first; `level`: 0..4. Asked on 5, 3 or 2 levels."""
        count = self.any([5, 5, 5, 3, 2])
        if count == 2 and level == 2:
            count = 3
        if count == 3:
            names, level = [names[0], names[2], names[4]], [0, 0, 1, 2, 2][level]
        elif count == 2:
            names, level = [names[0], names[4]], int(level > 2)
        form = self.rng.random()
        if form < 0.3:
            options = [(str(i + 1), "") for i in range(count)]
            wording += self.any([f" 1 is {names[0]}, {count} is {names[-1]}.",
                                 f" (1 = {names[0]}, {count} = {names[-1]})"])
        elif form < 0.5:
            options = [(str(i + 1), name) for i, name in enumerate(names)]
        elif form < 0.75:
            options = [(name, "") for name in names]
        else:
            options = [("", name) for name in names]
        return Question(task, "score", wording, options, level)

    # -- texts -------------------------------------------------------------------------------------
    def join(self, sentences):
        return (" " if self.chance(0.9) else "\n").join(sentences)

    def filler(self, most):
        return [self.fill(self.pick(w.FILLER)) for _ in range(self.rng.randint(0, most))]

    def length(self):
        """How many sentences of filler: mostly few, sometimes a long text."""
        return self.any([0, 0, 1, 1, 2, 3]) if not self.chance(self.long_texts) else self.rng.randint(8, 25)

    def review(self):
        level = self.rng.randint(0, 4)
        thing = self.rng.sample(w.WORDS["thing"], 2)
        sentences = []
        for _ in range(self.any([1, 1, 2, 2, 3])):
            adjective = self.any(w.WORDS[f"level{level}"])
            if level in (1, 3) and self.chance(0.1):
                adjective = self.any(w.WORDS["intens"]) + " " + adjective
            if level == 1 and self.chance(0.15):
                adjective = "not " + self.any(w.WORDS["level3"])
            source = w.REVIEW_ANY if self.chance(0.55) else w.REVIEW[level]
            sentences.append(self.fill(self.pick(source), adj=adjective, thing=thing))
        sentences += self.filler(self.length())
        self.rng.shuffle(sentences)
        text = self.join(sentences)
        make = [lambda: self.sentiment_choice(level), lambda: self.sentiment_choice(level),
                lambda: self.sentiment_predicate(level), lambda: self.sentiment_predicate(level),
                lambda: self.score("score", self.pick(w.ASK["satisfaction"]),
                                   self.any(w.SATISFACTION_LEVELS), level),
                lambda: self.mention(text), lambda: self.spam_question(False)]
        return text, make

    def sentiment_choice(self, level):
        names = self.any(w.SENTIMENT_NAMES)
        side = 0 if level < 2 else 1 if level == 2 else 2
        kept = [0, 2] if side != 1 and self.chance(0.5) else [0, 1, 2]
        described = self.chance(0.3)
        options = [(names[i], self.any(w.SENTIMENT_DESCRIPTIONS[i]) if described else "") for i in kept]
        if self.chance(0.12):
            names = self.any(w.SATISFACTION_LEVELS)
            options, kept, side = [(name, "") for name in names], [0, 1, 2, 3, 4], level
        return self.choice("sentiment", self.pick(w.ASK["sentiment"]), options, kept.index(side))

    def sentiment_predicate(self, level):
        positive = self.chance(0.5)
        wording = self.pick(w.ASK["is_positive" if positive else "is_negative"])
        good, bad = ("the writer is happy", "the writer is not happy")
        return self.predicate("sentiment yes/no", wording, level > 2 if positive else level < 2,
                              (good, bad) if positive else ("the writer is unhappy",
                                                            "the writer is not unhappy"))

    def article(self):
        topic = self.any(list(w.TOPICS))
        nouns = w.TOPICS[topic][2]
        text = self.join([self.fill(self.pick(w.TOPIC_SENTENCES), n=nouns)
                          for _ in range(self.any([1, 2, 2, 3, 4]) + self.length() // 2)])
        make = [lambda: self.topic_choice(topic), lambda: self.topic_choice(topic),
                lambda: self.topic_choice(topic), lambda: self.topic_predicate(topic),
                lambda: self.topic_predicate(topic), lambda: self.mention(text)]
        return text, make

    def topic_name(self, topic):
        return topic if self.chance(0.6) else self.any(w.TOPICS[topic][0])

    def topic_choice(self, topic):
        others = [t for t in w.TOPICS if t != topic]
        chosen = self.rng.sample(others, self.any([1, 2, 3, 3, 4, 5, 6, 7]))
        described = self.chance(0.25)
        options = [(self.topic_name(t), w.TOPICS[t][1] if described else "") for t in [topic] + chosen]
        if self.chance(0.1):  # no topic but "other" fits
            options, chosen = options[1:], chosen[1:]
            options.insert(0, (self.any(["other", "something else", "none of these"]), ""))
        return self.choice("topic", self.pick(w.ASK["topic"]), options, 0)

    def topic_predicate(self, topic):
        yes = self.chance(0.5)
        asked = topic if yes else self.any([t for t in w.TOPICS if t != topic])
        return self.predicate("topic yes/no",
                              self.fill(self.pick(w.ASK["is_topic"]), t=self.topic_name(asked)), yes)

    def mail(self):
        spam = self.chance(0.5)
        source = w.SPAM if spam else w.HAM
        text = self.join([self.fill(self.pick(source)) for _ in range(self.any([1, 1, 2, 3]))])
        make = [lambda: self.spam_choice(spam), lambda: self.spam_choice(spam),
                lambda: self.spam_question(spam), lambda: self.spam_question(spam),
                lambda: self.mention(text)]
        return text, make

    def spam_choice(self, spam):
        names = self.any(w.SPAM_NAMES)
        described = self.chance(0.3)
        options = [(names[i], self.any(w.SPAM_DESCRIPTIONS[i]) if described else "") for i in (0, 1)]
        return self.choice("spam", self.pick(w.ASK["spam"]), options, 0 if spam else 1)

    def spam_question(self, spam):
        return self.predicate("spam yes/no", self.pick(w.ASK["is_spam"]), spam,
                              ("it is an advertisement or a scam", "it is a normal message"))

    def ticket(self):
        category = self.any(list(w.SUPPORT))
        urgency = self.rng.randint(0, 4)
        sentences = [self.fill(self.pick(w.SUPPORT[category][2]))]
        if self.chance(0.3):
            sentences.append(self.fill(self.pick(w.SUPPORT[category][2])))
        sentences.insert(self.rng.randint(0, len(sentences)), self.fill(self.pick(w.URGENCY[urgency])))
        if self.chance(0.3):
            sentences.insert(0, self.any(["Hello,", "Hi,", "Dear team,", "Good morning,"]))
        sentences += self.filler(self.length()) if self.chance(0.3) else []
        text = self.join(sentences)
        make = [lambda: self.category_choice(category), lambda: self.category_choice(category),
                lambda: self.score("score", self.pick(w.ASK["urgency"]),
                                   self.any(w.URGENCY_LEVELS), urgency),
                lambda: self.score("score", self.pick(w.ASK["urgency"]),
                                   self.any(w.URGENCY_LEVELS), urgency),
                lambda: self.ticket_predicate(category, urgency), lambda: self.mention(text)]
        return text, make

    def category_choice(self, category):
        others = self.rng.sample([c for c in w.SUPPORT if c != category], self.any([1, 2, 3, 4]))
        described = self.chance(0.35)
        options = [(c if self.chance(0.6) else self.any(w.SUPPORT[c][0]),
                    w.SUPPORT[c][1] if described else "") for c in [category] + others]
        return self.choice("ticket", self.pick(w.ASK["category"]), options, 0)

    def ticket_predicate(self, category, urgency):
        if urgency != 2 and self.chance(0.5):
            return self.predicate("ticket yes/no", self.pick(w.ASK["is_urgent"]), urgency > 2,
                                  ("it must be answered today", "it can wait"))
        yes = self.chance(0.5)
        asked = category if yes else self.any([c for c in w.SUPPORT if c != category])
        name = asked if self.chance(0.6) else self.any(w.SUPPORT[asked][0])
        return self.predicate("ticket yes/no", self.fill(self.pick(w.ASK["is_category"]), t=name), yes)

    def people(self):
        names = self.rng.sample(w.WORDS["name"], self.any([1, 1, 2, 2, 3]))
        facts = [(name, relation, self.any(w.WORDS[relation])) for name in names
                 for relation in self.rng.sample(list(w.FACTS), self.any([1, 2, 2, 3]))]
        sentences = [self.fill(self.pick(w.FACTS[r][0]), name=n, v=v) for n, r, v in facts]
        sentences += self.filler(self.length()) if self.chance(0.3) else []
        self.rng.shuffle(sentences)
        text = self.join(sentences)
        make = [lambda: self.fact_choice(facts), lambda: self.fact_choice(facts),
                lambda: self.fact_predicate(facts), lambda: self.fact_predicate(facts),
                lambda: self.mention(text)]
        return text, make

    def wrong_value(self, facts, name, relation, value):
        told = [v for n, r, v in facts if r == relation and v != value]
        if told and self.chance(0.5):
            return self.any(told)
        return self.any([v for v in w.WORDS[relation] if v != value])

    def fact_choice(self, facts):
        name, relation, value = self.any(facts)
        wrong = {self.wrong_value(facts, name, relation, value) for _ in range(self.any([1, 2, 3, 4]))}
        options = [(v, "") for v in [value] + sorted(wrong)]
        return self.choice("fact", self.fill(self.pick(w.FACTS[relation][2]), name=name), options, 0)

    def fact_predicate(self, facts):
        name, relation, value = self.any(facts)
        yes = self.chance(0.5)
        asked = value if yes else self.wrong_value(facts, name, relation, value)
        return self.predicate("fact yes/no", self.fill(self.pick(w.FACTS[relation][1]), name=name, v=asked),
                              yes)

    def mention(self, text):
        """Whether or which word the text has; any kind of text can be asked this."""
        inside = sorted(set(re.findall(r"[A-Za-z]{4,}", text)))
        outside = [v for name in ("city", "job", "animal", "color", "fruit", "hobby", "vehicle", "month",
                                  "thing", "day", "food", "name")
                   for v in self.rng.sample(w.WORDS[name], 2) if v not in text]
        if not inside:
            return self.choose()
        if self.chance(0.5):
            yes = self.chance(0.5)
            asked = self.any(inside if yes else outside)
            if self.chance(0.3):
                asked = f'"{asked}"'
            return self.predicate("mention yes/no", self.fill(self.pick(w.ASK["mentions"]), w=asked), yes)
        wrong = self.rng.sample(outside, self.rng.randint(1, self.options_max - 2))
        options = [(self.any(inside), "")] + [(v, "") for v in wrong]
        return self.choice("mention", self.pick(w.ASK["which_mentioned"]), options, 0)

    def choose(self):
        """The option is named by the question: reading labels, and nothing else."""
        pool = sorted({v for name in ("city", "job", "animal", "color", "fruit", "hobby", "food", "name",
                                      "thing", "level3", "level1") for v in w.WORDS[name]} | set(w.TOPICS))
        many = self.options_max == 8 and self.chance(0.02)
        count = self.rng.randint(9, 40) if many else self.rng.randint(2, self.options_max)
        options = [(v, "") for v in self.rng.sample(pool, count)]
        return self.choice("choose", self.fill(self.pick(w.ASK["choose"]), w=options[0][0]), options, 0)

    # -- relevance ---------------------------------------------------------------------------------
    def document(self, subject, aspect):
        related = w.words(w.SUBJECTS[subject])
        sentences = [self.fill(self.pick(w.ASPECTS[aspect][1]), s=subject, S=subject.capitalize())]
        for _ in range(self.any([0, 1, 1, 2, 3])):
            if self.chance(0.4):
                sentences.append(self.fill(self.pick(w.ASPECTS[aspect][1]), s=subject,
                                           S=subject.capitalize()))
            else:
                sentences.append(self.fill(self.pick(w.DOCUMENT_FILLER), d=self.any(related)))
        return self.join(sentences)

    def relevance(self, count):
        """A query and `count` documents: relevant ones answer it; some of the others come close."""
        instructions = self.pick(w.RELEVANCE_INSTRUCTIONS) if self.chance(0.2) else ""
        subject = self.any(list(w.SUBJECTS))
        aspects = list(w.ASPECTS)
        aspect = self.any(aspects)
        bare = self.chance(0.2)  # the query is the subject alone: all about it is relevant
        query = subject if bare else self.fill(self.pick(w.ASPECTS[aspect][0]), s=subject)
        if self.chance(0.2):
            query = query.capitalize() + ("?" if self.chance(0.5) else "")
        example = Example(query, instructions, is_query=True)
        for _ in range(count):
            draw = self.rng.random()
            relevant = draw < 0.45
            of_subject = relevant or (draw < 0.65 and not bare)
            doc_subject = subject if of_subject else self.any([s for s in w.SUBJECTS if s != subject])
            other = self.any([a for a in aspects if a != aspect])
            doc_aspect = (aspect if relevant and not bare else other if of_subject and not bare
                          else self.any(aspects))
            example.questions.append(Question("relevance", "relevance", self.document(doc_subject, doc_aspect),
                                              [("yes", ""), ("no", "")], 0 if relevant else 1))
        return example

    def example(self, count, warm_up=0.0):
        """A text and `count` questions. `warm_up`: the share of texts with questions of label reading."""
        if self.chance(warm_up):
            sentence = self.fill(self.pick(w.FILLER))
            questions = [self.mention(sentence) if self.chance(0.5) else self.choose() for _ in range(count)]
            return Example(sentence, "", False, questions)
        kind = self.any(["review"] * 4 + ["article"] * 4 + ["mail"] * 2 + ["ticket"] * 4 + ["people"] * 4
                        + ["relevance"] * 3)
        if kind == "relevance":
            return self.relevance(count)
        text, make = getattr(self, kind)()
        if self.chance(0.04):
            text = json.dumps({self.any(["text", "message", "body", "content"]): text})
        instructions = self.pick(w.INSTRUCTIONS) if self.chance(0.1) else ""
        questions = [self.any(make)() for _ in range(count)]
        if self.chance(0.1):
            questions[0] = self.choose()
        return Example(text, instructions, False, questions)

    def chat(self):
        """(the user's message, the assistant's answer)"""
        said, answer = self.any(w.CHAT)
        return self.pick(said), answer
