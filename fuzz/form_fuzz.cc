#include "base/check.h"
#include "harness.h"
#include "server/batches/multipart.h"

namespace skein::fuzz {

// The Content-Type, the mark, the body: parts lie in the body, one behind the other.
void FuzzForm(Bytes data) {
  const auto [type, body] = PartsOf(TextOf(data));
  const auto form = ParseForm(type, body);
  if (!form.ok()) {
    SKEIN_CHECK(!form.status().message().empty());
    return;
  }
  const char* end = body.data();
  for (const FormPart& part : form.value()) {
    SKEIN_CHECK(part.content.data() >= end);
    end = part.content.data() + part.content.size();
  }
  SKEIN_CHECK(end <= body.data() + body.size());
}

}  // namespace skein::fuzz
