#include "core/graph/wire/graph_files.h"

#include <unistd.h>

#include <atomic>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>

namespace cairn {
namespace {

std::string hexadecimal(const GraphHash& hash) {
  std::ostringstream text;
  text << std::hex << std::setfill('0');
  for (const std::uint8_t byte : hash) text << std::setw(2) << static_cast<int>(byte);
  return text.str();
}

// In the order in which a process traces them. The name may be any text.
std::string file_name(const std::string& name) {
  static std::atomic<int> number = 0;
  std::ostringstream text;
  text << ::getpid() << '-' << std::setfill('0') << std::setw(4) << ++number << '-';
  for (const char c : name) text << (std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_');
  text << ".txt";
  return text.str();
}

}  // namespace

void write_graph_file(const std::string& name, const Graph& graph, const GraphHash& hash) {
  const char* const folder = std::getenv("CAIRN_GRAPHS");
  if (folder == nullptr || *folder == '\0') return;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const std::filesystem::path path = std::filesystem::path(folder) / file_name(name);
  std::ofstream file(path);
  file << "graph " << hexadecimal(hash) << ": " << graph.nodes.size() << " nodes, "
       << graph.variables.size() << " variables\n"
       << to_text(graph);
  file.close();
  if (!file)
    throw PermissionDeniedError(
        str("CAIRN_GRAPHS: the recorded function cannot be written to ", path.string()));
}

}  // namespace cairn
