#include "text/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cctype>
#include <new>
#include <utility>

namespace skein {
namespace {

// The number of steps after which the engine gives up on a match. This is the engine's default; it
// has a name because it is a limit of ours.
constexpr uint32_t kMatchLimit = 10'000'000;

struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

}  // namespace

void Regex::Free::operator()(void* code) const { pcre2_code_free(static_cast<pcre2_code*>(code)); }

Result<Regex> Regex::Compile(std::string_view pattern) {
  SKEIN_ASSIGN_OR_RETURN(const std::string translated, TranslateRegex(pattern));
  return CompileTranslated(translated, pattern);
}

Result<Regex> Regex::Literal(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80 && !std::isalnum(static_cast<unsigned char>(c))) {
      quoted.push_back('\\');
    }
    quoted.push_back(c);
  }
  return CompileTranslated(quoted, text);
}

Result<Regex> Regex::CompileTranslated(const std::string& translated, std::string_view source) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (code == nullptr) {
    PCRE2_UCHAR message[160];
    pcre2_get_error_message(error, message, sizeof(message));
    return Status(StatusCode::kUnsupported, "regular expression '" + std::string(source) +
                                                "': " + reinterpret_cast<const char*>(message));
  }
  Regex regex(code);
  uint32_t matches_empty = 0;
  pcre2_pattern_info(code, PCRE2_INFO_MATCHEMPTY, &matches_empty);
  if (matches_empty != 0) {
    return Status(StatusCode::kUnsupported,
                  "regular expression '" + std::string(source) + "' can match the empty string");
  }
  // If there is no just-in-time compiler, the interpreter gives the same matches.
  (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return regex;
}

Status Regex::Find(std::string_view text, size_t from, bool* found, size_t* begin,
                   size_t* end) const {
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  const std::unique_ptr<pcre2_match_data, FreeMatchData> data(pcre2_match_data_create(1, nullptr));
  const std::unique_ptr<pcre2_match_context, FreeMatchContext> context(
      pcre2_match_context_create(nullptr));
  if (data == nullptr || context == nullptr) throw std::bad_alloc();  // as every other allocation
  pcre2_set_match_limit(context.get(), kMatchLimit);
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  // Just-in-time code has a small stack. If it overflows, the interpreter is used, which works on
  // the heap.
  int rc =
      pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data.get(), context.get());
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
    rc = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                     data.get(), context.get());
  }
  *found = rc >= 0;
  if (rc == PCRE2_ERROR_NOMATCH) return Status::Ok();
  if (rc == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
  if (rc < 0) {
    return Status(StatusCode::kInternal, "the pre-tokenizer's regular expression gave up (code " +
                                             std::to_string(rc) + ") on a text of " +
                                             std::to_string(text.size()) + " bytes");
  }
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data.get());
  *begin = offsets[0];
  *end = offsets[1];
  return Status::Ok();
}

}  // namespace skein
