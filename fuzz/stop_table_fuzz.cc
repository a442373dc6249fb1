#include "base/check.h"
#include "harness.h"
#include "sched/decode_set/stop_table.h"

namespace skein::fuzz {

// A table that is read is written and read again without a change.
void FuzzStopTable(Bytes data) {
  const auto table = StopTable::FromJson(TextOf(data));
  if (!table.ok()) {
    SKEIN_CHECK(!table.status().message().empty());
    return;
  }
  const auto again = StopTable::FromJson(table.value().ToJson());
  SKEIN_CHECK(again.ok() && again.value() == table.value());
}

}  // namespace skein::fuzz
