#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "testing/shared.h"
#include "text/jinja/value.h"

namespace skein {
namespace {

using Json = ChatTemplate::Json;

std::vector<Json> ReadLines(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

TEST(ChatTemplateTest, ReproducesQwen3) {
  SKEIN_REQUIRE_SHARED();
  const std::string dir = testing::SharedDir() + "/tokenizers/qwen3";
  auto loaded = ChatTemplate::Load(dir);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const auto cases = ReadLines(dir + "/chat_cases.jsonl");
  EXPECT_EQ(cases.size(), 23u);
  for (const Json& expected : cases) {
    Json variables = expected;
    variables.erase("text");
    variables.erase("ids");
    variables.erase("name");
    auto text = loaded.value()->Render(variables);
    ASSERT_TRUE(text.ok()) << expected["name"] << ": " << text.status().message();
    EXPECT_EQ(text.value(), expected["text"].get<std::string>()) << expected["name"];
  }
}

const std::string kDataDir = SKEIN_SOURCE_DIR "/tests/data/chat_templates/";

// Compares with Jinja2 (tools/gen_template_cases.py): every filter, test, method and operator on
// values of every type, white space control, and random programs.
TEST(ChatTemplateTest, RendersAsJinja) {
  const auto lines = ReadLines(kDataDir + "expressions.jsonl");
  ASSERT_GT(lines.size(), 5000u);
  int num_failures = 0;
  for (size_t i = 1; i < lines.size() && num_failures < 50; ++i) {
    const auto source = lines[i][0].get<std::string>();
    const Json& expected = lines[i][1];
    auto parsed = ChatTemplate::Parse(source);
    auto text =
        parsed.ok() ? parsed.value()->Render(lines[0]) : Result<std::string>(parsed.status());
    const bool equal = text.ok() ? expected == Json(text.value()) : expected.is_null();
    if (equal) continue;
    ++num_failures;
    ADD_FAILURE() << "line " << i + 1 << ": " << lines[i][0] << "\nexpected " << expected
                  << "\nactual   "
                  << (text.ok() ? Json(text.value()).dump() : text.status().message());
  }
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ChatTemplateTest, RendersConversationsAsJinja) {
  std::map<std::string, Json> conversations;
  for (const Json& entry : Json::parse(ReadText(kDataDir + "conversations.json"))) {
    conversations[entry["name"]] = entry["variables"];
  }
  const auto cases = ReadLines(kDataDir + "cases.jsonl");
  ASSERT_GE(cases.size(), 100u);
  for (const Json& expected : cases) {
    SCOPED_TRACE(expected["template"].dump() + " " + expected["conversation"].dump());
    auto parsed = ChatTemplate::Parse(ReadText(kDataDir + expected["template"].get<std::string>()));
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    const auto text = parsed.value()->Render(conversations.at(expected["conversation"]));
    if (expected.contains("text")) {
      ASSERT_TRUE(text.ok()) << text.status().message();
      EXPECT_EQ(text.value(), expected["text"].get<std::string>());
    } else {
      EXPECT_EQ(text.status().code(), StatusCode::kInvalidArgument);
      if (expected.contains("raised")) {
        EXPECT_EQ(text.status().message(), expected["raised"].get<std::string>());
      }
    }
  }
}

// The status of Parse; kOk if it accepts the template.
Status ParseStatus(const std::string& source) {
  auto parsed = ChatTemplate::Parse(source);
  return parsed.ok() ? Status::Ok() : parsed.status();
}

TEST(ChatTemplateTest, RefusesByName) {
  const std::pair<const char*, const char*> kRefused[] = {
      {"{{ x | frobnicate }}", "filter 'frobnicate'"},
      {"{{ x | xmlattr }}", "filter 'xmlattr'"},
      {"{{ x | abs }}", "filter 'abs'"},
      {"{{ x | e }}", "filter 'e'"},
      {"{{ x | escape }}", "filter 'escape'"},
      {"{{ x | float }}", "filter 'float'"},
      {"{{ x | max }}", "filter 'max'"},
      {"{{ x | min }}", "filter 'min'"},
      {"{{ x | round(1) }}", "filter 'round'"},
      {"{{ x | sum }}", "filter 'sum'"},
      {"{{ xs | map('wordwrap') }}", "filter 'wordwrap'"},
      {"{{ xs | map(f) }}", "filter 'map' with a computed name"},
      {"{{ xs | select('sameas', 1) }}", "test 'sameas'"},
      {"{{ xs | selectattr('n', 'gt', 1) }}", "test 'gt'"},
      {"{{ x is frobnicated }}", "test 'frobnicated'"},
      {"{{ x is callable }}", "test 'callable'"},
      {"{{ x is divisibleby 3 }}", "test 'divisibleby'"},
      {"{{ x is ge 3 }}", "test 'ge'"},
      {"{{ x is greaterthan 3 }}", "test 'greaterthan'"},
      {"{{ x is le 3 }}", "test 'le'"},
      {"{{ x is lessthan 3 }}", "test 'lessthan'"},
      {"{{ x is lower }}", "test 'lower'"},
      {"{{ x is lt 3 }}", "test 'lt'"},
      {"{{ x is upper }}", "test 'upper'"},
      {"{{ x.encode('utf-8') }}", "method 'encode'"},
      {"{{ x.count('l') }}", "method 'count'"},
      {"{{ x.index(1) }}", "method 'index'"},
      {"{{ x.isdigit() }}", "method 'isdigit'"},
      {"{{ x.partition(',') }}", "method 'partition'"},
      {"{{ x.removeprefix('a') }}", "method 'removeprefix'"},
      {"{{ x.rfind('a') }}", "method 'rfind'"},
      {"{{ loop.cycle('a', 'b') }}", "method 'cycle'"},
      {"{% include 'x' %}", "tag 'include'"},
      {"{% print x %}", "tag 'print'"},
      {"{% with x = 1 %}{% endwith %}", "tag 'with'"},
      {"{%- raw %}{{ $ }}{% endraw %}", "tag 'raw'"},
      {"{% block x %}{% endblock %}", "tag 'block'"},
      {"{% call m() %}{% endcall %}", "tag 'call'"},
      {"{% for x in xs recursive %}{% endfor %}", "a recursive loop"},
      {"{{ lipsum(1) }}", "name 'lipsum'"},
      {"{{ cycler('a') }}", "name 'cycler'"},
      {"{{ f(*xs) }}", "unpacking of arguments"},
      {"{{ '\\N{DASH}' }}", "string escape '\\N'"},
      {"{{ '\\101' }}", "string escape '\\1'"},
      {"{{ 7 / 2 }}", "operator '/'"},
      {"{{ 7 // 2 }}", "operator '//'"},
      {"{{ 7 ** 2 }}", "operator '**'"},
      {"{{ 1 + +2 }}", "a unary '+'"},
      {"{{ 0x1F }}", "a number with 'x'"},
      {"{{ 1_000 }}", "a number with '_'"},
  };
  for (const auto& [source, name] : kRefused) {
    const Status status = ParseStatus(source);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << source;
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("line 1"), std::string::npos) << status.message();
  }
}

// Some refusals depend on the value, so rendering refuses them. Python renders a text for each.
TEST(ChatTemplateTest, RefusesValuesByName) {
  const std::pair<const char*, const char*> kRefused[] = {
      {"{{ '12' | int(0, 16) }}", "the base of 'int'"},
      {"{{ 'é' | int }}", "'int' of text outside ASCII"},
      {"{{ 'é' | capitalize }}", "'capitalize' of a character outside ASCII"},
      {"{{ 'aé'.title() }}", "'title' of text outside ASCII"},
      {"{{ 'a b'.rsplit() }}", "'rsplit' without a separator"},
      {"{{ '%s' % 1 }}", "'%' formatting of a string"},
      {"{% for x in [1] %}{{ loop.depth }}{% endfor %}", "'loop.depth'"},
      {"{% for x in [1] %}{{ loop.changed(x) }}{% endfor %}", "method 'changed'"},
  };
  for (const auto& [source, name] : kRefused) {
    auto parsed = ChatTemplate::Parse(source);
    const Status status =
        parsed.ok() ? parsed.value()->Render(Json::object()).status() : parsed.status();
    EXPECT_FALSE(status.ok()) << source;
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("not supported"), std::string::npos) << status.message();
  }
}

TEST(ChatTemplateTest, RefusesWhatSafeTextWouldEscape) {
  for (const char* source :
       {"{{ (x | safe) + '<' }}", "{{ '<' + (x | safe) }}", "{% set y = x | safe %}{{ [y] }}",
        "{{ (x | safe).replace('a', '<') }}", "{{ x | safe | trim }}", "{{ (x | safe)[0] }}",
        "{{ (x | safe) * 2 }}", "{{ (x | safe)[1:] }}"}) {
    auto parsed = ChatTemplate::Parse(source);
    ASSERT_TRUE(parsed.ok()) << source;
    const auto text = parsed.value()->Render({{"x", "a&b"}});
    EXPECT_EQ(text.status().code(), StatusCode::kInvalidArgument) << source;
    EXPECT_NE(text.status().message().find("safe text"), std::string::npos) << source;
  }
}

TEST(ChatTemplateTest, NamesTheLineOfASyntaxError) {
  const Status status = ParseStatus("a\n{% if x %}\nb\n{{ 1 + }}\n{% endif %}");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("line 4"), std::string::npos) << status.message();
  EXPECT_EQ(ParseStatus("\xff").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseStatus(std::string(5 << 20, 'a')).code(), StatusCode::kTooLarge);
}

TEST(ChatTemplateTest, DeepSourcesAreRefused) {
  const auto repeat = [](const std::string& text, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += text;
    return out;
  };
  for (const std::string& source :
       {"{{ " + repeat("(", 100'000) + " }}", "{{ " + repeat("[", 100'000) + " }}",
        "{{ " + repeat("-", 100'000) + "1 }}", "{{ " + repeat("not ", 100'000) + "1 }}",
        "{{ 1" + repeat("+1", 100'000) + " }}", "{{ x" + repeat(".x", 100'000) + " }}",
        "{{ x" + repeat("|trim", 100'000) + " }}", repeat("{% if x %}", 100'000),
        "{{ " + repeat("1 if 1 else ", 100'000) + "1 }}", "{% set " + repeat("(", 100'000) + "x",
        "{{ x" + repeat("(1)", 100'000) + " }}", "{{ x" + repeat(" is true", 100'000) + " }}"}) {
    EXPECT_FALSE(ParseStatus(source).ok()) << source.substr(0, 30);
  }
}

// None of these templates may hang, exhaust memory or overflow the stack.
TEST(ChatTemplateTest, HostileTemplatesEndWithAnError) {
  for (const char* source :
       {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
        "{% set ns = namespace(x='ab') %}{% for a in range(99999) %}{% set ns.x = ns.x ~ ns.x %}"
        "{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for a in range(99999) %}{% set ns.x = ns.x + ns.x %}"
        "{% endfor %}",
        "{% set ns = namespace(x=[]) %}{% for a in range(99999) %}{% set ns.x = [ns.x] %}"
        "{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for a in range(90) %}{% set ns.x = [ns.x, ns.x] %}"
        "{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=[1]) %}{% for a in range(90) %}{% set ns.x = [ns.x, ns.x] %}"
        "{% endfor %}{{ ns.x | tojson }}",
        "{% set ns = namespace(x=[1], y=[1]) %}{% for a in range(90) %}"
        "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}"
        "{{ ns.x == ns.y }}",
        "{{ 'x' * 1000000000000000000000000000000 }}", "{{ [1] * 1000000000000 }}",
        "{{ 'x' | indent(1000000000000000000) }}", "{{ [1] | tojson(indent=1000000000000000000) }}",
        "{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns.me }}",
        "{% for a in range(100000) %}{% for b in range(1000) %}{{ 'a' * 1000 }}{% endfor %}"
        "{% endfor %}",
        "{{ (('a' * 10000000) ~ 'b') | replace('', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx') }}",
        "{{ 170141183460469231731687303715884105727 + 1 }}",
        "{{ 170141183460469231731687303715884105727 * 2 }}",
        "{{ range(-10000000000000000000000000000000000000,"
        " 100000000000000000000000000000000000000) | length }}"}) {
    auto parsed = ChatTemplate::Parse(source);
    ASSERT_TRUE(parsed.ok()) << source << parsed.status().message();
    EXPECT_FALSE(parsed.value()->Render(Json::object()).ok()) << source;
  }
}

TEST(ChatTemplateTest, LongConversationsFitTheLimits) {
  auto parsed = ChatTemplate::Parse(ReadText(kDataDir + "tags.jinja"));
  ASSERT_TRUE(parsed.ok());
  Json messages = Json::array();
  for (int i = 0; i < 4000; ++i) {
    messages.push_back(
        {{"role", i % 2 ? "assistant" : "user"}, {"content", std::string(1000, 'x')}});
  }
  const auto text = parsed.value()->Render({{"messages", messages}});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_GT(text.value().size(), 4'000'000u);
}

TEST(ChatTemplateTest, RefusesBadVariables) {
  auto parsed = ChatTemplate::Parse("{{ x }}");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value()->Render(Json::array()).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(parsed.value()->Render({{"x", "\xc3("}}).status().code(), StatusCode::kInvalidArgument);
  Json deep = 1;
  // Values deeper than allowed. Copies of 5,000 levels would need more stack than there is with
  // sanitizers at -O0.
  for (int i = 0; i < 2 * jinja::kMaxContainerDepth; ++i) deep = Json::array({std::move(deep)});
  EXPECT_EQ(parsed.value()->Render({{"x", deep}}).status().code(), StatusCode::kInvalidArgument);
}

TEST(ChatTemplateTest, TellsTheTime) {
  auto parsed = ChatTemplate::Parse("{{ strftime_now('%Y-%m-%d') }}");
  ASSERT_TRUE(parsed.ok());
  const auto today = [] {
    const std::time_t now = std::time(nullptr);
    char buffer[32];
    std::strftime(buffer, sizeof(buffer), "%Y-%m-%d", std::localtime(&now));
    return std::string(buffer);
  };
  const std::string before = today();
  const auto text = parsed.value()->Render(Json::object());
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(text.value() == before || text.value() == today()) << text.value();
}

// A model folder with the given files. The destructor removes it.
class ModelDir {
 public:
  ModelDir() {
    std::string pattern = ::testing::TempDir() + "/skein_template_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~ModelDir() { std::filesystem::remove_all(path_); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string LoadAndRender(const ModelDir& dir, const Json& variables) {
  auto loaded = ChatTemplate::Load(dir.path());
  if (!loaded.ok()) return "load: " + loaded.status().message();
  auto text = loaded.value()->Render(variables);
  return text.ok() ? text.value() : "render: " + text.status().message();
}

TEST(ChatTemplateTest, LoadsFromAModelDirectory) {
  const ModelDir dir;
  EXPECT_EQ(ChatTemplate::Load(dir.path()).status().code(), StatusCode::kNotFound);
  dir.Write("tokenizer_config.json", R"({"bos_token": "<b>"})");
  EXPECT_EQ(ChatTemplate::Load(dir.path()).status().code(), StatusCode::kNotFound);
  dir.Write("tokenizer_config.json",
            R"({"bos_token": {"content": "<b>", "lstrip": false}, "eos_token": "<e>",
                "pad_token": null, "additional_special_tokens": ["<x>", {"content": "<y>"}],
                "chat_template": )"
            R"("{{ bos_token }}{{ x }}{{ eos_token }}{{ pad_token is defined }})"
            R"({{ additional_special_tokens|join }}"})");
  EXPECT_EQ(LoadAndRender(dir, {{"x", 1}}), "<b>1<e>False<x><y>");
  EXPECT_EQ(LoadAndRender(dir, {{"x", 1}, {"bos_token", "!"}}), "!1<e>False<x><y>");
  dir.Write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "r"},
      {"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]})");
  EXPECT_EQ(LoadAndRender(dir, Json::object()), "d");
  EXPECT_EQ(LoadAndRender(dir, {{"tools", nullptr}}), "d");
  EXPECT_EQ(LoadAndRender(dir, {{"tools", Json::array()}}), "t");
  dir.Write("chat_template.jinja", "file{{ bos_token }}\n");
  EXPECT_EQ(LoadAndRender(dir, Json::object()), "file");
  dir.Write("chat_template.jinja", "{% nope %}");
  EXPECT_EQ(LoadAndRender(dir, Json::object()), "load: chat template: line 1: unknown tag 'nope'");
  std::filesystem::remove(dir.path() + "/chat_template.jinja");
  dir.Write("tokenizer_config.json", R"({"model_max_length": 1000000000000000019884624838656,
      "unknown": -1e999, "chat_template": "t"})");
  EXPECT_EQ(LoadAndRender(dir, Json::object()), "t");
  for (const char* bad : {"[]", "{", R"({"chat_template": 5})"}) {
    dir.Write("tokenizer_config.json", bad);
    EXPECT_EQ(ChatTemplate::Load(dir.path()).status().code(), StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace skein
