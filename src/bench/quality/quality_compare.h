#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/json/json.h"

namespace skein {

// Loads the result of a run of `skein bench quality`, as written by --json. kInvalidArgument, with
// the path, if the file is not such a result.
Result<Json> LoadQualityResult(const std::string& path);

// Makes one table for each type of question. A row is one result file, measured with the reading
// that this file chose. The files may be of language models, embedding models and decision models.
// Results on different data are marked as different.
std::string CompareTables(const std::vector<Json>& results);

}  // namespace skein
