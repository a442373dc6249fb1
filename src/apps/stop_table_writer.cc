#include "apps/stop_table_writer.h"

#include <cstdio>
#include <fstream>

namespace skein {

void StopTableWriter::OnEnd(const StopTable* learned) {
  if (learned == nullptr || learned->num_batches == 0) return;
  std::ofstream file(path_);
  file << learned->ToJson();
  file.flush();
  if (!file) std::fprintf(stderr, "--flock-table: cannot write %s\n", path_.c_str());
}

}  // namespace skein
