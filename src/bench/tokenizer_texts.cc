#include "bench/tokenizer_texts.h"

#include <array>
#include <iterator>
#include <random>
#include <string_view>

#include "base/check.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

using Words = std::string_view;

constexpr Words kAdjectives[] = {
    "quiet",  "early",     "narrow",  "careful",   "northern", "ancient", "bright",   "heavy",
    "common", "distant",   "formal",  "gentle",    "hidden",   "modern",  "ordinary", "patient",
    "public", "remote",    "sharp",   "simple",    "strange",  "uneven",  "useful",   "wooden",
    "yellow", "empty",     "foreign", "generous",  "honest",   "local",   "private",  "rural",
    "subtle", "temporary", "visible", "weathered", "abstract", "brittle", "curious",  "durable"};
constexpr Words kNouns[] = {
    "harbour",   "letter",    "engine",   "river",     "committee", "theory",   "window",
    "market",    "teacher",   "machine",  "valley",    "museum",    "contract", "forest",
    "journey",   "library",   "mountain", "neighbour", "orchard",   "painter",  "question",
    "railway",   "season",    "shipment", "station",   "student",   "surgeon",  "telescope",
    "village",   "workshop",  "argument", "balance",   "bridge",    "calendar", "channel",
    "climate",   "council",   "daughter", "decision",  "document",  "economy",  "election",
    "evidence",  "factory",   "festival", "garden",    "history",   "island",   "judgement",
    "kitchen",   "language",  "memory",   "motion",    "network",   "opinion",  "passenger",
    "pattern",   "physician", "poem",     "process",   "promise",   "quarrel",  "record",
    "reservoir", "sentence",  "signal",   "soldier",   "symptom",   "treaty",   "voyage"};
constexpr Words kVerbs[] = {
    "crossed",    "described", "followed",   "repaired", "remembered", "measured",  "ignored",
    "reached",    "visited",   "questioned", "improved", "divided",    "explained", "copied",
    "opened",     "painted",   "praised",    "rejected", "returned",   "surprised", "translated",
    "watched",    "weakened",  "examined",   "answered", "borrowed",   "carried",   "defended",
    "discovered", "exchanged", "gathered",   "imagined", "inspected",  "mentioned", "observed",
    "prepared",   "protected", "recorded",   "replaced", "settled"};
constexpr Words kAdverbs[] = {"slowly",   "rarely",  "twice",     "perhaps",     "nearly",
                              "suddenly", "quietly", "certainly", "reluctantly", "afterwards",
                              "openly",   "again",   "eagerly",   "usually",     "somehow"};
constexpr Words kLinks[] = {"because", "although", "while", "before", "after",
                            "until",   "since",    "where", "unless", "whenever"};
constexpr Words kPrepositions[] = {"near", "behind",  "without", "beyond", "under",
                                   "from", "against", "inside",  "across", "towards"};
constexpr Words kSyllables[] = {"bar", "el", "dor",  "mi", "ven", "ka", "ros", "tin", "ul", "han",
                                "we",  "ri", "stro", "ga", "lem", "no", "fen", "ath", "os", "qui"};
constexpr Words kHanzi[] = {
    "我们", "今天", "城市", "学校", "研究", "问题", "发展", "技术", "历史", "文化", "经济",
    "市场", "天气", "朋友", "工作", "时间", "生活", "科学", "语言", "模型", "数据", "结果",
    "方法", "系统", "服务", "用户", "需要", "可以", "已经", "正在", "认为", "提出", "分析",
    "讨论", "参加", "观察", "重新", "建设", "保护", "山水", "春天", "夜晚", "桥梁", "火车",
    "医生", "老师", "孩子", "音乐", "茶叶", "河边", "邻居", "信件", "的",   "了",   "在",
    "和",   "与",   "也",   "都",   "很",   "从",   "到",   "把",   "被"};
constexpr Words kStems[] = {"buffer", "index",  "token",  "queue",  "block", "header",
                            "stream", "cache",  "parser", "record", "batch", "score",
                            "limit",  "offset", "worker", "event"};

constexpr Words kProse =
    "The ferry leaves the small harbour at six, when the fog still lies over the breakwater and "
    "the "
    "gulls have not yet begun to quarrel. On most mornings the same eleven people stand at the "
    "rail: "
    "two nurses coming off the night shift, a clockmaker with his case of tools, a student who "
    "reads "
    "while she walks, and the others whose names nobody has asked for. They don't speak much. The "
    "captain, whose father ran the line before him, says that he could steer the crossing blind; "
    "he "
    "has done it 14,000 times, after all, and it's only the weather that changes. By half past "
    "seven "
    "the sun has reached the far shore, the shutters go up, and the day that was waiting there "
    "begins "
    "again, much like the last. ";
constexpr Words kCode = R"(// Counts the words of a file that occur more than once.
#include <map>

static int CountRepeated(const std::vector<std::string>& words, size_t min_length) {
  std::map<std::string, int> seen;
  int repeated = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].size() < min_length) continue;  // too short
    if (++seen[words[i]] == 2) {
      repeated += 1;
    }
  }
  return repeated == 0 ? -1 : repeated * 0x10 + 42;
}
)";
constexpr Words kMixed =
    "Release notes 2.7.1 (2024-03-18): the importer accepts UTF-8 paths such as "
    "/données/été/übung.csv "
    "and 测试/数据.json. 数字は半角で入力してください。 Fixed: `parse_rows()` returned None for "
    "\"N/A\"; see https://example.org/issues/4815?page=2#note-16. Speed-up ≈ 3.5× on ARM64 🚀, "
    "memory "
    "−12%. Пожалуйста, обновите конфигурацию: {\"retries\": 3, \"timeout_ms\": 2500, \"tags\": "
    "[\"α\", \"β\"]}. Καλημέρα! The naïve café owner's résumé cost €19.99... or was it £17? "
    "مرحبا بالعالم. 한국어 문장도 있습니다. ";
constexpr Words kChinese =
    "清晨的渡船离开小港口时，雾还停在防波堤上。每天早上站在栏杆边的总是那几个人：两位刚下夜班的护士"
    "，一个"
    "提着工具箱的钟表匠，还有一边走路一边看书的学生。他们很少说话，船长说这段路他闭着眼睛也能开过去"
    "。";

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  // Picks lower indices more often, since words of a language are not equally frequent.
  template <size_t kSize>
  Words Pick(const Words (&list)[kSize]) {
    const size_t a = Below(kSize), b = Below(kSize);
    return list[a < b ? a : b];
  }
  size_t Below(size_t limit) { return random_() % limit; }

  std::string Name() {
    std::string name;
    for (size_t i = 2 + Below(2); i > 0; --i) name += kSyllables[Below(std::size(kSyllables))];
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    return name;
  }
  std::string NounPhrase() {
    std::string phrase = Below(3) == 0 ? "a " : "the ";
    if (Below(2) == 0) phrase += std::string(Pick(kAdjectives)) + ' ';
    phrase += Pick(kNouns);
    if (Below(5) == 0) phrase += 's';
    if (Below(6) == 0) phrase += " of " + Name();
    return phrase;
  }
  std::string Clause() {
    std::string clause = NounPhrase() + ' ';
    if (Below(3) == 0) clause += std::string(Pick(kAdverbs)) + ' ';
    clause += std::string(Pick(kVerbs)) + ' ' + NounPhrase();
    if (Below(2) == 0) clause += ' ' + std::string(Pick(kPrepositions)) + ' ' + NounPhrase();
    return clause;
  }
  std::string Sentence() {
    std::string sentence = Clause();
    const size_t kind = Below(6);
    if (kind == 0) sentence += ", said " + Name();
    if (kind <= 2) sentence += ' ' + std::string(Pick(kLinks)) + ' ' + Clause();
    if (kind == 3) sentence += "; it wasn't " + NounPhrase();
    if (kind == 4) sentence += " in " + std::to_string(1200 + Below(900));
    sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
    return sentence + (Below(9) == 0 ? "?" : ".") + (Below(7) == 0 ? "\n\n" : " ");
  }
  std::string ChineseSentence() {
    std::string sentence;
    for (size_t parts = 1 + Below(3); parts > 0; --parts) {
      for (size_t i = 3 + Below(6); i > 0; --i) sentence += kHanzi[Below(std::size(kHanzi))];
      sentence += parts > 1 ? "，" : "。";
    }
    return sentence;
  }
  std::string Identifier() { return std::string(Pick(kStems)) + '_' + std::string(Pick(kNouns)); }
  std::string Function() {
    const std::string name = Identifier(), value = Identifier(), limit = Identifier();
    std::string code =
        "def " + name + "(" + value + ", " + limit + "=" + std::to_string(Below(5000)) + "):\n";
    code += "    \"\"\"" + Clause() + ".\"\"\"\n";
    code += "    if " + value + " is None or len(" + value + ") > " + limit + ":\n";
    code +=
        "        raise ValueError(f\"" + std::string(Pick(kAdjectives)) + " {" + value + "!r}\")\n";
    code += "    for i, item in enumerate(" + value + "):\n";
    code += "        self." + Identifier() + "[i] = item." + std::string(Pick(kVerbs)) + "(" +
            std::to_string(Below(100)) + ") * 0.5  # " + Clause() + "\n";
    return code + "    return " + value + "[:" + limit + "]\n\n\n";
  }
  std::string Turn() {
    std::string turn = "<|im_start|>user\n" + Sentence() + Sentence() + "<|im_end|>\n";
    turn += "<|im_start|>assistant\n";
    for (size_t i = 3 + Below(5); i > 0; --i) turn += Sentence();
    return turn + "<|im_end|>\n";
  }

 private:
  std::mt19937_64 random_;
};

// The first `num_chars` characters of a text.
std::string Cut(std::string_view text, size_t num_chars) {
  size_t pos = 0;
  for (size_t i = 0; i < num_chars; ++i) {
    SKEIN_CHECK(pos < text.size());
    NextCodePoint(text, &pos);
  }
  return std::string(text.substr(0, pos));
}

// A character of these texts takes at most this many bytes.
constexpr size_t kMaxBytesPerChar = 4;

std::string Repeated(std::string_view unit, size_t num_chars) {
  std::string text;
  while (text.size() < num_chars * kMaxBytesPerChar) text += unit;
  return Cut(text, num_chars);
}

template <typename Part>
std::string Generated(size_t num_chars, Part part) {
  std::string text;
  while (text.size() < num_chars * kMaxBytesPerChar) text += part();
  return Cut(text, num_chars);
}

std::string ChatUnit() {
  return "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
         "Which of these two answers is better, and why? Be brief.<|im_end|>\n"
         "<|im_start|>assistant\nThe first one: it names its source and stays on the point."
         "<|im_end|>\n";
}

}  // namespace

std::string DistinctProse(uint64_t seed, size_t num_chars) {
  Generator generator(seed);
  return Generated(num_chars, [&] { return generator.Sentence(); });
}

std::vector<TokenizerText> TokenizerTexts() {
  std::vector<TokenizerText> texts;
  const auto add = [&](const std::string& kind, size_t num_chars, std::string text) {
    texts.push_back({kind, std::move(text), num_chars});
  };
  const auto number = [](size_t n) { return '-' + std::to_string(n); };
  add("english-5", 5, "Hello");
  add("english-51", 51, Repeated(kProse, 51));
  add("chinese-90", 90, Repeated(kChinese, 90));
  add("english-674", 674, Repeated(kProse, 674));
  add("code-470", 470, Repeated(kCode, 470));
  add("mixed-641", 641, Repeated(kMixed, 641));
  add("chat-212", 212, Repeated(ChatUnit(), 212));
  for (const size_t n : {2025, 4000, 8000, 32000, 64000, 200000}) {
    add("english" + number(n) + "-repeated", n, Repeated(kProse, n));
    add("english" + number(n) + "-distinct", n, DistinctProse(n, n));
  }
  Generator code(1), chinese(2), chat(3);
  add("code-16000-repeated", 16000, Repeated(kCode, 16000));
  add("code-16000-distinct", 16000, Generated(16000, [&] { return code.Function(); }));
  for (const size_t n : {21370, 85480}) {
    add("chat" + number(n) + "-repeated", n, Repeated(ChatUnit(), n));
    add("chat" + number(n) + "-distinct", n, Generated(n, [&] { return chat.Turn(); }));
  }
  add("chinese-31998-repeated", 31998, Repeated(kChinese, 31998));
  add("chinese-31998-distinct", 31998, Generated(31998, [&] { return chinese.ChineseSentence(); }));
  return texts;
}

}  // namespace skein
