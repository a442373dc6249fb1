#include "text/tokenizer/post_processor.h"

#include <algorithm>
#include <string>

namespace skein {
namespace {

using Part = PostProcessor::Part;
using Sequence = PostProcessor::Sequence;

Part Special(TokenId id, int32_t type_id) { return {Sequence::kSpecial, type_id, {id}}; }

Status Refuse(const char* what) {
  return Status(StatusCode::kUnsupported,
                std::string("tokenizer.json: post_processor: ") + what + " is not supported");
}

size_t Count(const std::vector<Part>& parts, Sequence sequence) {
  return std::count_if(parts.begin(), parts.end(),
                       [&](const Part& part) { return part.sequence == sequence; });
}

}  // namespace

PostProcessor::PostProcessor() {
  encodings_[0] = {{{Sequence::kA, 0, {}}}};
  encodings_[1] = {{{Sequence::kA, 0, {}}}, {{Sequence::kB, 1, {}}}};
}

void PostProcessor::AddTrim(bool add_prefix_space) {
  Trim trim{add_prefix_space, {}};
  for (const Encoding& encoding : encodings_[1]) {
    for (const Sequence sequence : {Sequence::kA, Sequence::kB}) {
      if (Count(encoding, sequence) > 0 && encoding.front().sequence != sequence) {
        trim.is_behind_special[sequence == Sequence::kB] = true;
      }
    }
  }
  trims_.push_back(trim);
}

Status PostProcessor::AddBert(TokenId cls, TokenId sep) {
  if (has_template_) return Refuse("BertProcessing behind TemplateProcessing");
  for (auto& encodings : encodings_) {
    encodings[0].insert(encodings[0].begin(), Special(cls, 0));
    encodings[0].push_back(Special(sep, 0));
    for (size_t i = 1; i < encodings.size(); ++i) encodings[i].push_back(Special(sep, 1));
  }
  return Status::Ok();
}

Status PostProcessor::AddRoberta(TokenId cls, TokenId sep, bool trim_offsets,
                                 bool add_prefix_space) {
  if (has_template_) return Refuse("RobertaProcessing behind TemplateProcessing");
  if (trim_offsets) AddTrim(add_prefix_space);
  for (auto& encodings : encodings_) {
    for (size_t i = 0; i < encodings.size(); ++i) {
      for (Part& part : encodings[i]) part.type_id = 0;
      encodings[i].insert(encodings[i].begin(), Special(i == 0 ? cls : sep, 0));
      encodings[i].push_back(Special(sep, 0));
    }
  }
  return Status::Ok();
}

Status PostProcessor::AddTemplate(const std::vector<Part>& single, const std::vector<Part>& pair) {
  if (has_template_) return Refuse("TemplateProcessing behind TemplateProcessing");
  if (Count(single, Sequence::kA) != 1 || Count(single, Sequence::kB) != 0) {
    return Refuse("TemplateProcessing whose 'single' has other than one sequence A");
  }
  if (Count(pair, Sequence::kA) != 1 || Count(pair, Sequence::kB) != 1) {
    return Refuse(
        "TemplateProcessing whose 'pair' has other than one sequence A and one sequence B");
  }
  has_template_ = true;
  for (const bool is_pair : {false, true}) {
    const std::vector<Encoding> old = std::move(encodings_[is_pair]);
    std::vector<Encoding> encodings;
    for (const Part& piece : is_pair ? pair : single) {
      if (piece.sequence == Sequence::kSpecial) {
        encodings.push_back({piece});
        continue;
      }
      encodings.push_back(old[piece.sequence == Sequence::kB]);
      for (Part& part : encodings.back()) part.type_id = piece.type_id;
    }
    encodings_[is_pair] = std::move(encodings);
  }
  return Status::Ok();
}

std::vector<Part> PostProcessor::Layout(bool is_pair) const {
  std::vector<Part> layout;
  for (const Encoding& encoding : encodings_[is_pair]) {
    layout.insert(layout.end(), encoding.begin(), encoding.end());
  }
  return layout;
}

}  // namespace skein
