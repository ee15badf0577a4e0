#include "rpc/server/token.h"

#include <cctype>
#include <cstdlib>
#include <fstream>

#include "core/base/error.h"

namespace cairn::rpc {

std::string read_token(const std::string& path) {
  std::ifstream file(path);
  std::string token;
  if (!file || !std::getline(file, token))
    throw NotFoundError(str("the token file ", path, " cannot be read or is empty"));
  // Editors end the line with a newline, some with a carriage return before it.
  while (!token.empty() && std::isspace(static_cast<unsigned char>(token.back()))) token.pop_back();
  return token;
}

std::string token_of_environment() {
  if (const char* path = std::getenv("CAIRN_TOKEN_FILE"); path != nullptr && *path != '\0')
    return read_token(path);
  const char* token = std::getenv("CAIRN_TOKEN");
  return token == nullptr ? std::string() : token;
}

}  // namespace cairn::rpc
