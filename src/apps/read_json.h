#pragma once

#include <string>
#include <utility>

#include "apps/read_file.h"
#include "base/json_numbers.h"
#include "server/json/json.h"

namespace skein {

// The error of a JSON file's field whose value is not `allowed`.
inline Status FieldError(const std::string& field, const std::string& allowed) {
  return Status(StatusCode::kInvalidArgument, field + " must be " + allowed, field);
}

// Reads the value of a model's JSON file. Integers of more than 64 bits are read as doubles.
// kNotFound if the file cannot be read; kInvalidArgument, naming the file, if it is not JSON.
inline Result<Json> ReadJson(const std::string& path) {
  SKEIN_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::optional<Json> json = ParseJson(WithReadableNumbers(text));
  if (!json) return Status(StatusCode::kInvalidArgument, path + " is not JSON");
  return *std::move(json);
}

// The same; kInvalidArgument if the value is not an object.
inline Result<Json> ReadJsonObject(const std::string& path) {
  SKEIN_ASSIGN_OR_RETURN(Json json, ReadJson(path));
  if (json.is_object()) return json;
  return Status(StatusCode::kInvalidArgument, path + " is not a JSON object");
}

}  // namespace skein
