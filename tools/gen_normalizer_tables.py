#!/usr/bin/env python3
"""Writes normalizer_tables.cc, compatibility*_tables.cc and grapheme_tables.cc: more Unicode data.

    python3 tools/gen_normalizer_tables.py src/text/unicode/generated

Everything is probed from the `tokenizers` package, which must be installed:
  control, nonspacing marks   BertNormalizer (clean_text, strip_accents)
  combining marks             StripAccents
  lower case                  Lowercase, one character at a time (it knows no context)
  compatibility               NFKD of single characters, where it differs from NFD
  grapheme clusters           Precompiled, which replaces whole clusters of less than six bytes: with a map
                              from every byte to "Q" the number of Qs tells where clusters end
Clusters are classified as far as that can matter: all clusters of six bytes and more are alike.
"""
import pathlib
import sys

from charsmap import build_charsmap
from gen_unicode_tables import CODE_POINTS, structs, to_ranges, write_table
from tokenizers import normalizers

Q_MAP = normalizers.Precompiled(build_charsmap({bytes([b]): "Q" for b in range(2, 256)}))
MARK = "\u0301"  # two bytes, Extend
KA, VIRAMA, ZWJ, COPYRIGHT = "\u0915", "\u094d", "\u200d", "\u00a9"


def removed_by(normalizer):
    return [c for c in CODE_POINTS if normalizer.normalize_str(chr(c)) == ""]


def count_clusters(pattern, code_points=CODE_POINTS):
    """code point -> number of Qs for the text that `pattern` makes of its character."""
    counts = {}
    for start in range(0, len(code_points), 4096):
        block = code_points[start:start + 4096]
        parts = Q_MAP.normalize_str("\x01".join(pattern(chr(c)) for c in block)).split("\x01")
        if len(parts) != len(block):  # U+0001 itself
            parts = [Q_MAP.normalize_str(pattern(chr(c))) for c in block]
        counts.update((c, part.count("Q")) for c, part in zip(block, parts))
    return counts


def chars_where(pattern, wanted):
    return {c for c, count in count_clusters(pattern).items() if count == wanted}


def grapheme_ranges():
    joins = chars_where(lambda c: "x" + c, 1) - {0, 1}
    # Extend, unlike a spacing mark, may stand between a pictograph and its joiner.
    extend = chars_where(lambda c: COPYRIGHT + c + ZWJ + COPYRIGHT + MARK, 5) & joins
    prepend = chars_where(lambda c: c + "x", 1) - {0, 1}
    breaks = chars_where(lambda c: c + MARK + MARK, 2) | {0, 1, 0x0A, 0x0D}
    # Three and more bytes: C alone is one Q either way, C, mark and mark are two where C is a control.
    pictograph = chars_where(lambda c: COPYRIGHT + ZWJ + c, 3) - joins
    consonant = chars_where(lambda c: KA + VIRAMA + c + MARK, 4) - joins - breaks
    linker = chars_where(lambda c: KA + c + KA + MARK, 4) & joins
    conjunct_extend = (chars_where(lambda c: KA + c + VIRAMA + KA + MARK, 5) & joins) | linker
    classes = {}
    for name, members in (("kControl", breaks), ("kSpacingMark", joins - extend), ("kExtend", extend),
                          ("kPrepend", prepend), ("kPictograph", pictograph - prepend)):
        for c in members:
            assert c not in classes or name == "kPictograph", (hex(c), name, classes[c])
            classes.setdefault(c, name)
    for low, high, name in ((0x1100, 0x115F, "kHangulL"), (0xA960, 0xA97C, "kHangulL"),
                            (0x1160, 0x11A7, "kHangulV"), (0xD7B0, 0xD7C6, "kHangulV"),
                            (0x11A8, 0x11FF, "kHangulT"), (0xD7CB, 0xD7FB, "kHangulT")):
        for c in range(low, high + 1):
            assert c not in classes, hex(c)
            classes[c] = name
    classes[0x0D], classes[0x0A], classes[0x200D] = "kCr", "kLf", "kZwj"
    rows = []
    for c in sorted(classes):
        if rows and rows[-1][1] == c - 1 and rows[-1][2] == classes[c]:
            rows[-1][1] = c
        else:
            rows.append([c, c, classes[c]])
    return ([(a, b, "GraphemeClass::" + name) for a, b, name in rows], to_ranges(sorted(consonant)),
            to_ranges(sorted(linker)), to_ranges(sorted(conjunct_extend)))


def flat_mappings(mappings):
    flat = []
    for c, text in sorted(mappings.items()):
        flat += [c, len(text), *map(ord, text)]
    return list(map(str, flat))


def main():
    out = pathlib.Path(sys.argv[1])
    bert = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    ranges = "CodePointRange"
    lower = {c: normalizers.Lowercase().normalize_str(chr(c)) for c in CODE_POINTS}
    write_table(out / "normalizer_tables.cc", [
        ("BertControlRanges", ranges, "The code points that clean_text of BertNormalizer removes.",
         structs(to_ranges(removed_by(normalizers.BertNormalizer(**{**bert, "clean_text": True}))))),
        ("NonspacingMarkRanges", ranges, "The code points that strip_accents of BertNormalizer removes.",
         structs(to_ranges(removed_by(normalizers.BertNormalizer(**{**bert, "strip_accents": True}))))),
        ("CombiningMarkRanges", ranges, "The code points that StripAccents removes.",
         structs(to_ranges(removed_by(normalizers.StripAccents())))),
        ("LowerCase", "uint32_t", "Lower case: code point, length, parts.",
         flat_mappings({c: text for c, text in lower.items() if text != chr(c)})),
    ], "text/unicode/normalizer_tables.h")
    nfd, nfkd = normalizers.NFD(), normalizers.NFKD()
    compatible = {c: nfkd.normalize_str(chr(c)) for c in CODE_POINTS
                  if nfkd.normalize_str(chr(c)) != nfd.normalize_str(chr(c))}
    write_table(out / "compatibility_tables.cc", [
        ("CompatibilityDecompositions", "uint32_t",
         "Compatibility decompositions into several characters: code point, length, parts.",
         flat_mappings({c: text for c, text in compatible.items() if len(text) > 1}))],
        "text/unicode/normalizer_tables.h")
    write_table(out / "compatibility_single_tables.cc", [
        ("CompatibilitySingles", "CodePointPair", "Compatibility decompositions into one character.",
         structs((c, ord(text)) for c, text in compatible.items() if len(text) == 1))],
        "text/unicode/normalizer_tables.h")
    rows, consonants, linkers, conjunct_extend = grapheme_ranges()
    write_table(out / "grapheme_tables.cc", [
        ("GraphemeClassRanges", "GraphemeClassRange", "Grapheme_Cluster_Break.", structs(rows)),
        ("ConjunctConsonantRanges", ranges, "Indic_Conjunct_Break=Consonant.", structs(consonants)),
        ("ConjunctLinkerRanges", ranges, "Indic_Conjunct_Break=Linker.", structs(linkers)),
        ("ConjunctExtendRanges", ranges, "The code points that may stand between consonants and linkers.",
         structs(conjunct_extend)),
    ], "text/unicode/normalizer_tables.h")


if __name__ == "__main__":
    main()
