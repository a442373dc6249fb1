#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/json/json.h"

namespace skein {

// The result of a run of `skein bench quality`, as --json writes it. kInvalidArgument, with the
// path, if the file is not one.
Result<Json> LoadQualityResult(const std::string& path);

// One table for each type of question with the chosen method of each result, whatever kind of model
// it was: language, embedding or decision model. Results on other data are told apart.
std::string CompareTables(const std::vector<Json>& results);

}  // namespace skein
