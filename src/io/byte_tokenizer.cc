#include "io/byte_tokenizer.h"

namespace skein {
namespace {

struct SpecialToken {
  int32_t id;
  const char* text;
};
constexpr SpecialToken kSpecialTokens[] = {{kByteTokenizerEndOfText, "<|endoftext|>"},
                                           {kByteTokenizerImStart, "<|im_start|>"},
                                           {kByteTokenizerImEnd, "<|im_end|>"}};

bool IsShownAsItself(int32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

void AppendUtf8(int32_t code_point, std::string* out) {  // REQUIRES: below U+0800
  if (code_point < 0x80) {
    out->push_back(static_cast<char>(code_point));
  } else {
    out->push_back(static_cast<char>(0xc0 | (code_point >> 6)));
    out->push_back(static_cast<char>(0x80 | (code_point & 0x3f)));
  }
}

std::string Token(int32_t id, const char* text) {
  return "{\"id\": " + std::to_string(id) + ", \"content\": \"" + text +
         "\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
         "\"normalized\": false, \"special\": true}";
}

// The alphabet of GPT-2. A printable Latin-1 byte stands for itself; the other bytes are numbered
// in order, from U+0100 on.
std::string Vocabulary() {
  std::string vocab;
  int32_t num_hidden = 0;
  for (int32_t byte = 0; byte < 256; ++byte) {
    const int32_t code_point = IsShownAsItself(byte) ? byte : 256 + num_hidden++;
    vocab += byte > 0 ? ", \"" : "\"";
    if (code_point == '"' || code_point == '\\') vocab.push_back('\\');
    AppendUtf8(code_point, &vocab);
    vocab += "\": " + std::to_string(byte);
  }
  return vocab;
}

}  // namespace

std::string ByteTokenizerJson() {
  const std::string byte_level =
      "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
      "\"use_regex\": true}";
  std::string added;
  for (const SpecialToken& token : kSpecialTokens) {
    added += (added.empty() ? "\n    " : ",\n    ") + Token(token.id, token.text);
  }
  return "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n"
         "  \"added_tokens\": [" +
         added +
         "\n  ],\n  \"normalizer\": null,\n"
         "  \"pre_tokenizer\": " +
         byte_level + ",\n  \"post_processor\": " + byte_level + ",\n  \"decoder\": " + byte_level +
         ",\n  \"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
         "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, "
         "\"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": false,\n"
         "    \"vocab\": {" +
         Vocabulary() + "},\n    \"merges\": []}\n}\n";
}

std::string ByteTokenizerConfigJson() {
  // Each turn is enclosed in marks; the last mark opens the answer.
  const std::string chat_template =
      "{% for message in messages %}"
      "{{ '<|im_start|>' + message['role'] + '\\\\n' + message['content'] + '<|im_end|>\\\\n' }}"
      "{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\\\n' }}{% endif %}";
  return "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n"
         "  \"add_prefix_space\": false,\n  \"clean_up_tokenization_spaces\": false,\n"
         "  \"bos_token\": \"<|endoftext|>\",\n  \"eos_token\": \"<|im_end|>\",\n"
         "  \"pad_token\": \"<|endoftext|>\",\n  \"chat_template\": \"" +
         chat_template + "\"\n}\n";
}

}  // namespace skein
