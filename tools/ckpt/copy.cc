// copy: checkpoints from one folder to another. It may be stopped at any time and begun again: what
// is there with the right size and checksum stays, and a checkpoint exists there from when its
// manifest does, which comes last.
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "core/base/checksum.h"
#include "core/disk/disk.h"
#include "core/disk/output_file.h"
#include "storage/checkpoint_folder.h"
#include "storage/manifest.h"
#include "storage/range_read.h"
#include "storage/row_store.h"
#include "tools/ckpt/commands.h"
#include "tools/ckpt/new_checkpoint.h"
#include "tools/job/train/checkpoint_path.h"

namespace cairn::tools::ckpt {
namespace {

using FileNumber = std::pair<dev_t, ino_t>;

struct Copied {
  std::uint64_t files = 0, bytes = 0, there = 0, linked = 0;
};

class Copy {
 public:
  Copy(std::string from, std::string to, std::map<FileNumber, std::string>& known)
      : from_(std::move(from)), to_(std::move(to)), known_(known) {}

  Copied run() {
    const std::string name = std::string("/") + storage::kManifestFile;
    const std::string text = reading(from_, [&] { return system_disk().read(from_ + name); });
    const storage::Manifest manifest = storage::parse_manifest(text, from_ + name);
    const bool exists = is_checkpoint(to_);
    if (exists && system_disk().read(to_ + name) != text)
      throw AlreadyExistsError(
          str(to_, " is another checkpoint than ", from_, ": copy it to another folder"));
    std::uint64_t bytes = 0;
    for (const auto& database : manifest.databases) bytes += database.bytes;
    Progress progress("copying", bytes);
    for (const auto& database : manifest.databases) {
      storage::verify_database_name(database.name);
      system_disk().make_folder(to_ + "/" + database.name);
      if (!exists) remove_unlisted(database);
      for (const auto& file : database.files) {
        reading(from_, [&] { take(file); });
        progress.add(file.bytes);
      }
    }
    if (!exists) system_disk().write_atomically(to_ + name, text);
    return copied_;
  }

 private:
  // A copy that was killed may have left files beside.
  void remove_unlisted(const storage::DatabaseInfo& database) {
    std::set<std::string> listed;
    for (const auto& file : database.files) listed.insert(file.name);
    for (const std::string& name : system_disk().list(to_ + "/" + database.name))
      if (!listed.contains(database.name + "/" + name))
        system_disk().remove(to_ + "/" + database.name + "/" + name);
  }

  void take(const storage::FileInfo& file) {
    storage::verify_database_name(file.name.substr(file.name.find('/') + 1));
    const std::string from = from_ + "/" + file.name, to = to_ + "/" + file.name;
    struct stat status {};
    if (::stat(from.c_str(), &status) != 0) raise_disk_error(errno, "looking at", from);
    const FileNumber number{status.st_dev, status.st_ino};
    if (is_there(to, file)) {
      ++copied_.there;
    } else if (const auto known = known_.find(number); known != known_.end()) {
      // A file that several checkpoints share is shared at its new place too.
      system_disk().remove(to);
      system_disk().link_files(folder_of(known->second), folder_of(to),
                               {std::filesystem::path(to).filename()});
      ++copied_.linked;
    } else {
      copy_bytes(from, to, file);
    }
    known_.emplace(number, to);
  }

  static bool is_there(const std::string& path, const storage::FileInfo& file) {
    if (!system_disk().exists(path) || system_disk().size(path) != file.bytes) return false;
    return storage::file_info(system_disk(), path, file.name) == file;
  }

  // A damaged file is not copied as if it were sound.
  void copy_bytes(const std::string& from, const std::string& to, const storage::FileInfo& file) {
    OutputFile out(to);
    std::uint32_t checksum = 0;
    std::uint64_t bytes = 0;
    system_disk().read_in_pieces(from, [&](std::string_view piece) {
      checksum = crc32c(piece, checksum);
      bytes += piece.size();
      out.write(piece);
    });
    if (bytes != file.bytes || checksum != file.checksum)
      throw DataLossError(str(from, " is damaged: it has ", bytes, " bytes, the manifest says ",
                              file.bytes, bytes == file.bytes ? ", and another checksum" : "",
                              ". `cairn ckpt repair` saves what is sound"));
    out.finish();
    ++copied_.files;
    copied_.bytes += bytes;
  }

  std::string from_, to_;
  std::map<FileNumber, std::string>& known_;
  Copied copied_;
};

}  // namespace

int copy(const CopyRequest& request) {
  const std::vector<std::string> sources = checkpoints_at(request.source);
  std::error_code ignored;
  if (std::filesystem::equivalent(folder_of(sources[0]), request.target, ignored))
    throw InvalidArgumentError(str("the checkpoints are in ", request.target, " already"));
  system_disk().make_folder(request.target);
  const auto lock = hold_folder(request.target, "Or copy to another folder");
  std::map<FileNumber, std::string> known;
  Json all = Json::array();
  for (const std::string& source : sources) {
    const std::string name = std::filesystem::path(source).filename();
    const std::string to = request.target + "/" + name;
    const Copied copied = Copy(source, to, known).run();
    if (request.form == Form::kJson)
      all.push_back({{"source", source},
                     {"path", to},
                     {"files_copied", copied.files},
                     {"files_there", copied.there},
                     {"files_linked", copied.linked},
                     {"bytes_copied", copied.bytes}});
    else
      std::printf("%s: %llu files copied (%s), %llu were there, %llu linked\n", to.c_str(),
                  static_cast<unsigned long long>(copied.files), megabytes(copied.bytes).c_str(),
                  static_cast<unsigned long long>(copied.there),
                  static_cast<unsigned long long>(copied.linked));
  }
  if (request.form == Form::kJson) print_json(all);
  return kFine;
}

}  // namespace cairn::tools::ckpt
