// A database of real files that is no longer sound.
#pragma once
#include <filesystem>
#include <fstream>
#include <string>

namespace cairn::storage {

// Damages the file of rows of a database. Returns its path.
inline std::string damage_in_the_middle(const std::string& database) {
  std::string rotten;
  for (const auto& entry : std::filesystem::directory_iterator(database))
    if (entry.path().extension() == ".sst") rotten = entry.path();
  std::fstream file(rotten, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(rotten) / 2));
  file.write("\x5a\xa5", 2);
  return rotten;
}

}  // namespace cairn::storage
