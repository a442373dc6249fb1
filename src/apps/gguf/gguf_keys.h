#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/gguf_metadata.h"

namespace skein {

// The metadata keys of one architecture: "<architecture>.<name>". An absent key is nullopt; a value
// of another type is an error that names the key.
class GgufKeys {
 public:
  GgufKeys(const GgufMetadata& metadata, const char* architecture)
      : metadata_(metadata), prefix_(std::string(architecture) + ".") {}

  Result<std::optional<int64_t>> Int(const char* name) const {
    return metadata_.Int(prefix_ + name);
  }
  Result<std::optional<double>> Double(const char* name) const {
    return metadata_.Double(prefix_ + name);
  }
  Result<std::optional<std::string_view>> String(const char* name) const {
    return metadata_.String(prefix_ + name);
  }
  Result<std::optional<std::vector<int64_t>>> Ints(const char* name) const {
    return metadata_.Ints(prefix_ + name);
  }
  Result<std::optional<std::vector<std::string_view>>> Strings(const char* name) const {
    return metadata_.Strings(prefix_ + name);
  }
  // A number as a list of one, or a list; empty if the key is absent.
  Result<std::vector<int64_t>> IntOrInts(const char* name) const;
  // Copies a number into `json`; absent is an error.
  Status Require(const char* name, const char* member, nlohmann::ordered_json* json) const {
    SKEIN_ASSIGN_OR_RETURN(const auto value, Int(name));
    if (!value) return metadata_.Error(prefix_ + name, "is missing");
    (*json)[member] = *value;
    return Status::Ok();
  }
  // The same for a number from 1 to `most`.
  Status RequireCount(const char* name, int64_t most, const char* member,
                      nlohmann::ordered_json* json) const;
  // The same for a number with a point, as the original config said it.
  Status RequireDouble(const char* name, const char* member, nlohmann::ordered_json* json) const;
  Status Unsupported(const char* name, const std::string& problem) const {
    return metadata_.Unsupported(prefix_ + name, problem);
  }
  Status Error(const char* name, const std::string& problem) const {
    return metadata_.Error(prefix_ + name, problem);
  }

 private:
  const GgufMetadata& metadata_;
  std::string prefix_;
};

// GGUF keeps f32 numbers. The shortest decimal form of one is what the original config said.
double ShortestDecimal(double value);

}  // namespace skein
