#include "json_mutator.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/random.h"
#include "harness.h"

namespace skein::fuzz {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostDepth = 64;
constexpr size_t kLengthBytes = 8;  // of a safetensors header

const char* const kValues[] = {"null",
                               "true",
                               "false",
                               "0",
                               "-1",
                               "1",
                               "2",
                               "3",
                               "7",
                               "16",
                               "255",
                               "256",
                               "1000000",
                               "2147483647",
                               "2147483648",
                               "-2147483648",
                               "4294967296",
                               "9223372036854775807",
                               "18446744073709551615",
                               "1e300",
                               "-0.0",
                               "0.5",
                               "1e-300",
                               "\"\"",
                               "\"a\"",
                               "\"\\u0000\"",
                               "\"<|im_end|>\"",
                               "\"\\ud83d\\ude00\"",
                               "[]",
                               "{}",
                               "[[]]",
                               "[null]",
                               "{\"\": {}}",
                               "[1, \"a\"]"};

struct Part {
  size_t begin = 0, end = 0;  // in the input; of the JSON text
  bool has_length = false;    // eight bytes before it say how long it is
};

bool Deep(std::string_view text) {
  int depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kMostDepth) return true;
  }
  return false;
}

// Objects and arrays alone: single values are mutated as bytes.
bool IsJson(std::string_view text) {
  const size_t first = text.find_first_not_of(" \n\r\t");
  if (first == text.npos || (text[first] != '{' && text[first] != '[') || Deep(text)) return false;
  return Json::accept(text);
}

std::vector<Part> FindParts(std::string_view input) {
  std::vector<Part> parts;
  for (size_t begin = 0; begin <= input.size();) {
    const size_t end = std::min(input.find(kPartMark, begin), input.size());
    const std::string_view part = input.substr(begin, end - begin);
    uint64_t length = 0;
    if (IsJson(part)) {
      parts.push_back({begin, end});
    } else if (part.size() > kLengthBytes) {
      std::memcpy(&length, part.data(), kLengthBytes);
      if (length <= part.size() - kLengthBytes && IsJson(part.substr(kLengthBytes, length))) {
        parts.push_back({begin + kLengthBytes, begin + kLengthBytes + length, true});
      }
    }
    begin = end + kPartMark.size();
  }
  return parts;
}

class Mutator {
 public:
  Mutator(Json root, Json other, uint64_t seed)
      : root_(std::move(root)), other_(std::move(other)), random_(seed) {}

  std::string Run() {
    for (int64_t left = random_.OneIn(2) ? 1 : random_.Between(1, 4); left > 0; --left) {
      Change(Pick(&root_));
    }
    return root_.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  static void Collect(Json* value, std::vector<Json*>* all) {
    all->push_back(value);
    if (value->is_structured()) {
      for (Json& member : *value) Collect(&member, all);
    }
  }
  Json* Pick(Json* root) {
    std::vector<Json*> all;
    Collect(root, &all);
    return all[static_cast<size_t>(random_.Between(0, std::ssize(all) - 1))];
  }
  std::string PickName(Json* root) {
    Json* object = Pick(root);
    for (int i = 0; i < 8 && !(object->is_object() && !object->empty()); ++i) object = Pick(root);
    if (!object->is_object() || object->empty()) return "a";
    auto member = object->begin();
    std::advance(member, random_.Between(0, std::ssize(*object) - 1));
    return member.key();
  }
  Json NewValue() {
    const size_t last = std::size(kValues) - 1;
    switch (random_.Between(0, 3)) {
      case 0:
        return *Pick(&root_);
      case 1:
        return *Pick(&other_);
      default:
        return Json::parse(kValues[random_.Between(0, static_cast<int64_t>(last))]);
    }
  }
  void Change(Json* value) {
    if (value->is_object() && !random_.OneIn(4)) return ChangeObject(value);
    if (value->is_array() && !random_.OneIn(4)) return ChangeArray(value);
    if (value->is_number_integer() && random_.OneIn(2)) {
      *value = static_cast<int64_t>(static_cast<uint64_t>(value->get<int64_t>()) +
                                    static_cast<uint64_t>(random_.Between(-3, 3)));
    } else if (value->is_number() && random_.OneIn(2)) {
      *value = value->get<double>() * (random_.OneIn(2) ? 2 : -0.5);
    } else if (value->is_string() && random_.OneIn(2)) {
      ChangeText(value->get_ptr<Json::string_t*>());
    } else {
      *value = NewValue();
    }
  }
  void ChangeText(std::string* text) {
    const auto at = static_cast<size_t>(random_.Between(0, std::ssize(*text)));
    switch (random_.Between(0, 3)) {
      case 0:
        text->erase(at, 1);
        break;
      case 1:
        text->insert(at, PickName(&other_));
        break;
      case 2:
        text->insert(at, *text);
        break;
      default:
        text->insert(at, 1, static_cast<char>(random_.Between(1, 126)));
    }
    if (text->size() > 512) text->resize(512);
  }
  void ChangeObject(Json* object) {
    Json* from = random_.OneIn(2) ? &root_ : &other_;
    if (!object->empty() && random_.OneIn(4)) {
      object->erase(PickOf(object));
    } else if (!object->empty() && random_.OneIn(3)) {
      (*object)[PickOf(object)] = NewValue();
    } else {
      const std::string name = PickName(from);
      Json value = NewValue();
      if (from->is_object() && from->contains(name)) value = from->at(name);
      (*object)[name] = std::move(value);
    }
  }
  std::string PickOf(Json* object) {
    auto member = object->begin();
    std::advance(member, random_.Between(0, std::ssize(*object) - 1));
    return member.key();
  }
  void ChangeArray(Json* array) {
    const auto at = static_cast<size_t>(random_.Between(0, std::ssize(*array)));
    if (at < array->size() && random_.OneIn(3)) {
      array->erase(at);
    } else if (at < array->size() && random_.OneIn(2)) {
      const Json copy = (*array)[at];
      for (int64_t left = random_.OneIn(8) ? 40 : 1; left > 0; --left) array->push_back(copy);
    } else {
      array->insert(array->begin() + static_cast<int64_t>(at), NewValue());
    }
  }

  Json root_;
  Json other_;
  Random random_;
};

Json ParsePart(std::string_view input, const Part& part) {
  return Json::parse(input.substr(part.begin, part.end - part.begin));
}

}  // namespace

std::string MutateJson(std::string_view input, std::string_view other, uint64_t seed) {
  const std::vector<Part> parts = FindParts(input);
  if (parts.empty()) return {};
  Random random(seed);
  const auto pick = [&](const std::vector<Part>& from) {
    return from[static_cast<size_t>(random.Between(0, std::ssize(from) - 1))];
  };
  const Part part = pick(parts);
  Json root = ParsePart(input, part);
  Json more = Json::object();
  if (other.data() == input.data() && other.size() == input.size()) {  // parsed once
    const Part second = pick(parts);
    more = second.begin == part.begin ? root : ParsePart(input, second);
  } else if (const std::vector<Part> other_parts = FindParts(other); !other_parts.empty()) {
    more = ParsePart(other, pick(other_parts));
  }
  const std::string text = Mutator(std::move(root), std::move(more), random.Bits()).Run();
  std::string result(input.substr(0, part.begin));
  if (part.has_length) {
    const uint64_t length = text.size();
    std::memcpy(result.data() + result.size() - kLengthBytes, &length, kLengthBytes);
  }
  return result + text + std::string(input.substr(part.end));
}

}  // namespace skein::fuzz
