#include "apps/gguf/gguf_modules.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "apps/gguf/description_files.h"
#include "apps/gguf/gguf_keys.h"
#include "io/safetensors_writer.h"
#include "server/json/json.h"

namespace skein {
namespace {

// The values of pooling_type.
enum PoolingType : int64_t { kNone, kMean, kCls, kLast, kRank };

// The name that sentence-transformers has for the file's pooling; empty: there is none.
Result<std::string> PoolingMode(const GgufModel& file, const GgufArchitecture& architecture) {
  constexpr char kKey[] = "pooling_type";
  const GgufKeys keys(file.metadata(), architecture.name);
  SKEIN_ASSIGN_OR_RETURN(const auto type, keys.Int(kKey));
  switch (type.value_or(kNone)) {
    case kNone:
    case kRank:
      return std::string();
    case kMean:
      return std::string("mean");
    case kCls:
      return std::string("cls");
    case kLast:
      return std::string("lasttoken");
    default:
      return keys.Unsupported(kKey, "is " + std::to_string(*type) + "; supported are 0 to 4");
  }
}

Status WriteDense(const GgufTensor& matrix, const std::string& dir) {
  SKEIN_RETURN_IF_ERROR(MakeDirectory(dir));
  std::vector<float> values(static_cast<size_t>(matrix.num_rows() * matrix.row_elements()));
  matrix.ReadRows(0, matrix.num_rows(), values.data());
  const int64_t out = matrix.num_rows(), in = matrix.row_elements();
  SKEIN_ASSIGN_OR_RETURN(
      SafetensorsWriter writer,
      SafetensorsWriter::Create(dir, {{"linear.weight", DType::kF32, {out, in}}}, INT64_MAX));
  SKEIN_RETURN_IF_ERROR(writer.Write(0, 0, std::as_bytes(std::span(values))));
  SKEIN_RETURN_IF_ERROR(writer.Close());
  return WriteJson(dir + "/config.json",
                   {{"in_features", in},
                    {"out_features", out},
                    {"bias", false},
                    {"activation_function", "torch.nn.modules.linear.Identity"}});
}

Json Module(const std::string& path, const char* type) {
  return {{"path", path}, {"type", std::string("sentence_transformers.models.") + type}};
}

}  // namespace

Status WriteGgufModules(const GgufModel& file, const GgufArchitecture& architecture,
                        const std::string& dir) {
  SKEIN_ASSIGN_OR_RETURN(const std::string mode, PoolingMode(file, architecture));
  if (mode.empty()) return Status::Ok();
  SKEIN_RETURN_IF_ERROR(MakeDirectory(dir + "/1_Pooling"));
  SKEIN_RETURN_IF_ERROR(WriteJson(dir + "/1_Pooling/config.json",
                                  {{"pooling_mode", mode}, {"include_prompt", true}}));
  Json modules = Json::array({Module("", "Transformer"), Module("1_Pooling", "Pooling")});
  for (const auto& [tensor, path] :
       {std::pair("dense_2.weight", "2_Dense"), std::pair("dense_3.weight", "3_Dense")}) {
    if (!file.Has(tensor)) continue;
    SKEIN_ASSIGN_OR_RETURN(const GgufTensor matrix, file.Find(tensor));
    SKEIN_RETURN_IF_ERROR(WriteDense(matrix, dir + "/" + path));
    modules.push_back(Module(path, "Dense"));
  }
  modules.push_back(Module("4_Normalize", "Normalize"));
  return WriteJson(dir + "/modules.json", modules);
}

}  // namespace skein
