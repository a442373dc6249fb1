#include "base/check.h"
#include "harness.h"
#include "server/json/json.h"

namespace skein::fuzz {

// A value that is printed is the same when it is read again.
void FuzzJson(Bytes data) {
  std::string why;
  const std::optional<Json> value = ParseJson(TextOf(data), &why);
  SKEIN_CHECK(value.has_value() == why.empty());
  if (!value) return;
  const std::string printed = DumpJson(*value);
  SKEIN_CHECK(printed.find('\n') == printed.npos);
  const std::optional<Json> again = ParseJson(printed);
  SKEIN_CHECK(again.has_value() && DumpJson(*again) == printed);
}

}  // namespace skein::fuzz
