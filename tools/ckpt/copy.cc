// copy: checkpoints from one folder to another, either of which may be in a bucket. It may be
// stopped at any time and begun again: what is there with the right size and checksum stays, and a
// checkpoint exists there from when its manifest does, which comes last.
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "core/base/checksum.h"
#include "core/disk/disk.h"
#include "core/disk/output_file.h"
#include "storage/any_disk.h"
#include "storage/database_place.h"
#include "storage/manifest.h"
#include "storage/object_store/object_disk.h"
#include "storage/object_store/object_store.h"
#include "storage/row_store.h"
#include "tools/ckpt/commands.h"
#include "tools/ckpt/copied_names.h"
#include "tools/ckpt/new_checkpoint.h"
#include "tools/job/train/checkpoint_path.h"

namespace cairn::tools::ckpt {
namespace {

using storage::any_disk;
using storage::FileInfo;

struct Copied {
  std::uint64_t files = 0, bytes = 0, there = 0, linked = 0;
};

// The same for all names of a file, and for no other one.
std::string identity(const std::string& path) {
  if (storage::is_object_path(path)) return storage::absolute_place(path);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) raise_disk_error(errno, "looking at", path);
  return str(status.st_dev, " ", status.st_ino);
}

[[noreturn]] void raise_damaged(const std::string& path, const FileInfo& found,
                                const FileInfo& said) {
  throw DataLossError(str(path, " is damaged: it has ", found.bytes, " bytes, the manifest says ",
                          said.bytes, found.bytes == said.bytes ? ", and another checksum" : "",
                          ". `cairn ckpt repair` saves what is sound"));
}

// A damaged file is not copied as if it were sound.
void copy_to_file(const std::string& from, const std::string& to, const FileInfo& file) {
  OutputFile out(to);
  FileInfo found{file.name};
  std::uint32_t checksum = 0;
  any_disk().read_in_pieces(from, [&](std::string_view piece) {
    checksum = crc32c(piece, checksum);
    found.bytes += piece.size();
    out.write(piece);
  });
  found.checksum = checksum;
  if (found != file) raise_damaged(from, found, file);
  out.finish();
}

// Parts of a file are sent again by themselves, so it has to lie on this machine.
void upload(const std::string& from, const std::string& to, const FileInfo& file) {
  if (const FileInfo found = storage::file_info(any_disk(), from, file.name); found != file)
    raise_damaged(from, found, file);
  const storage::ObjectPath at = storage::ObjectPath::of(to);
  storage::object_store_of(at.bucket)->put_file(at.key, from);
}

class Copy {
 public:
  Copy(std::string from, std::string to, const storage::DatabaseFolders& folders,
       std::map<std::string, std::string>& known)
      : from_(std::move(from)),
        to_(std::move(to)),
        folders_(folders),
        links_(any_disk().has_links(to_)),
        known_(known) {}

  Copied run(Disk::SingleWriter single) {
    const std::string name = std::string("/") + storage::kManifestFile;
    const std::string text = reading(from_, [&] { return any_disk().read(from_ + name); });
    storage::Manifest source = storage::parse_manifest(text, from_ + name);
    folders_.apply(source);
    storage::verify_here(any_disk(), from_, source);
    const storage::Manifest target = named_for(source, links_);
    const bool exists = is_checkpoint(to_);
    if (exists && storage::read_manifest(any_disk(), to_) != target)
      throw AlreadyExistsError(
          str(to_, " is another checkpoint than ", from_, ": copy it to another folder"));
    std::uint64_t bytes = 0;
    for (const auto& database : source.databases) bytes += database.bytes;
    Progress progress("copying", bytes);
    for (std::size_t i = 0; i < source.databases.size(); ++i) {
      const storage::DatabaseInfo& database = target.databases[i];
      any_disk().make_folder(to_ + "/" + database.name);
      if (!exists && links_) remove_unlisted(database);
      for (std::size_t j = 0; j < database.files.size(); ++j) {
        const std::string from = storage::place_of(from_, source.databases[i].files[j].name);
        reading(from_, [&] { take(from, database.files[j]); });
        progress.add(database.files[j].bytes);
      }
    }
    if (!exists && target == source && links_)
      any_disk().write_atomically(to_ + name, text);  // as it is, whichever release wrote it
    else if (!exists)
      storage::commit_new(any_disk(), to_, target, single);
    return copied_;
  }

 private:
  // A copy that was killed may have left files beside.
  void remove_unlisted(const storage::DatabaseInfo& database) {
    std::set<std::string> listed;
    for (const auto& file : database.files) listed.insert(file.name);
    for (const std::string& name : any_disk().list(to_ + "/" + database.name))
      if (!listed.contains(database.name + "/" + name))
        any_disk().remove(to_ + "/" + database.name + "/" + name);
  }

  void take(const std::string& from, const FileInfo& file) {
    const std::string to = to_ + "/" + file.name;
    const std::string number = identity(from);
    const auto known = known_.find(number);
    if (known != known_.end() && known->second == storage::absolute_place(to)) {
      ++copied_.linked;  // the object that another checkpoint has named already
      return;
    }
    if (is_there(to, file)) {
      ++copied_.there;
    } else if (known != known_.end()) {
      // A file that several checkpoints share is shared at its new place too.
      any_disk().remove(to);
      any_disk().link_files(folder_of(known->second), folder_of(to),
                            {std::filesystem::path(to).filename()});
      ++copied_.linked;
    } else {
      move_bytes(from, to, file);
      ++copied_.files;
      copied_.bytes += file.bytes;
    }
    known_.emplace(number, storage::absolute_place(to));
  }

  // In a bucket, what is there under that name and is another file is not replaced: a checkpoint
  // may be made of it.
  bool is_there(const std::string& path, const FileInfo& file) const {
    if (!any_disk().exists(path)) return false;
    const bool same = any_disk().size(path) == file.bytes &&
                      storage::file_info(any_disk(), path, file.name) == file;
    if (!same && !links_)
      throw AlreadyExistsError(str(storage::absolute_place(path),
                                   " is there and is another file: copy to another prefix"));
    return same;
  }

  void move_bytes(const std::string& from, const std::string& to, const FileInfo& file) {
    if (links_) return copy_to_file(from, to, file);
    if (!storage::is_object_path(from)) return upload(from, to, file);
    std::string pattern = std::filesystem::temp_directory_path().string() + "/cairn-copy-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr)
      raise_disk_error(errno, "making a folder to copy through, like", pattern);
    const std::unique_ptr<const std::string, void (*)(const std::string*)> gone(
        &pattern, [](const std::string* folder) {
          std::error_code ignored;
          std::filesystem::remove_all(*folder, ignored);
        });
    copy_to_file(from, pattern + "/file", file);
    upload(pattern + "/file", to, file);
  }

  std::string from_, to_;
  const storage::DatabaseFolders& folders_;
  bool links_;
  std::map<std::string, std::string>& known_;  // of files by their identity: where they are now
  Copied copied_;
};

bool is_same_folder(const std::string& a, const std::string& b) {
  std::error_code ignored;
  if (storage::is_object_path(a) || storage::is_object_path(b))
    return storage::absolute_place(a) == storage::absolute_place(b);
  return std::filesystem::equivalent(a, b, ignored);
}

}  // namespace

int copy(const CopyRequest& request) {
  const std::vector<std::string> sources = checkpoints_at(request.source);
  if (is_same_folder(folder_of(sources[0]), request.target))
    throw InvalidArgumentError(str("the checkpoints are in ", request.target, " already"));
  any_disk().make_folder(request.target);
  const auto lock = hold_folder(request.target, "Or copy to another folder");
  const storage::DatabaseFolders folders(request.folders);
  std::map<std::string, std::string> known;
  Json all = Json::array();
  for (const std::string& source : sources) {
    const std::string name = std::filesystem::path(source).filename();
    const std::string to = request.target + "/" + name;
    const Copied copied = Copy(source, to, folders, known).run(request.single);
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
