#include "strategy/servers/journal_of_environment.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "core/base/json.h"
#include "core/base/log.h"
#include "core/disk/disk.h"

namespace cairn {
namespace {

std::string environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// With a newline for each zero byte, by which its words are told apart.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (char& each : text)
    if (each == 0) each = '\n';
  return text;
}

// Which program has the journal, of which start of it.
struct Owner {
  std::string start, command;
  bool several = false;  // strategies in that start
};

Owner read_owner(const Disk& disk, const std::string& path) {
  const Json json = parse_json(disk.read(path), path);
  return {json.value("start", ""), json.value("command", ""), json.value("several", false)};
}

void write_owner(Disk& disk, const std::string& path, const Owner& owner) {
  const Json json{{"start", owner.start}, {"command", owner.command}, {"several", owner.several}};
  disk.write_atomically(path, json_text(json, 2) + "\n");
}

}  // namespace

JournalOptions journal_of_environment(const Consistency& consistency) {
  const std::string folder = environment_value("CAIRN_JOURNAL");
  if (folder.empty()) return {};
  if (consistency.in_rounds()) {
    log_info(
        "there is no journal in ", folder, ": under ", consistency.text(),
        " each round would wait for the disk. A program that is started again begins a session "
        "of its own, unless EngineOptions::journal names a folder");
    return {};
  }
  Disk& disk = system_disk();
  disk.make_folder(folder);
  const std::string path = folder + "/program.json", journal = folder + "/run";
  Owner own{environment_value("CAIRN_RESTARTS"), command_line()};
  if (disk.exists(path)) {
    const Owner earlier = read_owner(disk, path);
    own.several = !own.start.empty() && earlier.start == own.start;
    if (!own.several && (earlier.several || earlier.command != own.command))
      disk.remove_tree(journal);
  }
  write_owner(disk, path, own);
  if (!own.several) return {.folder = journal};
  log_info("there is no journal in ", folder,
           " any more: another strategy had it, of this start of ",
           "the program, and which of the two to go on with could not be told");
  return {};
}

}  // namespace cairn
