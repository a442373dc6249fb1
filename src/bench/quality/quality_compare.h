#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/json/json.h"

namespace skein {

// Loads the result of a run of `skein bench quality`, as written by --json. kInvalidArgument, with
// the path, if the file is not such a result.
Result<Json> LoadQualityResult(const std::string& path);

// Makes one table for each type of question, with the chosen method of each result, for every kind
// of model (language, embedding or decision model). Results on different data are marked as
// different.
std::string CompareTables(const std::vector<Json>& results);

}  // namespace skein
