#include "apps/model/file_hash.h"

#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <memory>
#include <vector>

namespace skein {

Result<std::string> Sha256OfFile(const std::string& path) {
  constexpr size_t kChunkBytes = size_t{1} << 20;
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  SKEIN_CHECK(context != nullptr);
  SKEIN_CHECK(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1);
  std::ifstream file(path, std::ios::binary);
  std::vector<char> chunk(kChunkBytes);
  while (file) {
    file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    SKEIN_CHECK(EVP_DigestUpdate(context.get(), chunk.data(), static_cast<size_t>(file.gcount())) ==
                1);
  }
  if (!file.eof()) return Status(StatusCode::kNotFound, "cannot read " + path);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  SKEIN_CHECK(EVP_DigestFinal_ex(context.get(), digest.data(), &length) == 1);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < length; ++i) {
    text.push_back(kDigits[digest[i] >> 4]);
    text.push_back(kDigits[digest[i] & 15]);
  }
  return text;
}

}  // namespace skein
