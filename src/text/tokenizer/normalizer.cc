#include "text/tokenizer/normalizer.h"

#include <algorithm>
#include <utility>

#include "base/interrupt/work_pause.h"

namespace skein {

Status ReplaceRule::Apply(std::string_view text, std::string* out) const {
  out->clear();
  size_t pos = 0;
  SliceMeter slices;
  while (slices.GoOn(pos)) {
    bool found = false;
    size_t begin = 0, end = 0;
    if (regex) {
      SKEIN_RETURN_IF_ERROR(regex->Find(text, pos, &found, &begin, &end));
    } else {
      begin = text.find(literal, pos);
      found = begin != std::string_view::npos;
      end = begin + literal.size();
    }
    if (!found) break;
    out->append(text.substr(pos, begin - pos));
    out->append(content);
    pos = end;
  }
  out->append(text.substr(pos));
  return Status::Ok();
}

bool Normalizer::IsNormalized(std::string_view text) const {
  return std::all_of(steps_.begin(), steps_.end(), [&](const Step& step) {
    return std::holds_alternative<NfcStep>(step) && nfc_->FindUnstable(text, 0) == text.size();
  });
}

Status Normalizer::Normalize(std::string_view text, std::string* out) const {
  if (!is_simple_) {
    AlignedText aligned(text);
    SKEIN_RETURN_IF_ERROR(Normalize(&aligned));
    *out = aligned.text();
    return Status::Ok();
  }
  out->assign(text);
  for (const Step& step : steps_) {
    if (std::holds_alternative<NfcStep>(step)) {
      *out = nfc_->Normalize(*out);
    } else if (const auto* prepend = std::get_if<Prepend>(&step)) {
      if (!out->empty()) out->insert(0, prepend->text);
    } else {
      std::string replaced;
      SKEIN_RETURN_IF_ERROR(std::get<ReplaceRule>(step).Apply(*out, &replaced));
      *out = std::move(replaced);
    }
  }
  return Status::Ok();
}

bool Normalizer::is_at_most_nfc() const {
  return std::ranges::all_of(
      steps_, [](const Step& step) { return std::holds_alternative<NfcStep>(step); });
}

}  // namespace skein
