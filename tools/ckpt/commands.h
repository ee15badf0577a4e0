// The subcommands of `cairn ckpt` that read and write folders, each in the file of its name. Each
// prints its result on standard output and returns the process's exit status: 0, or 1 if it found
// what it looked for (damage, NaN, a difference). What they throw ends the command with 1, and an
// InvalidArgument with 2.
//   Memory  below 200 MB whatever the checkpoint's size.
//   Thread  one; calls block.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/disk/disk.h"
#include "tools/ckpt/support.h"

namespace CLI {
class App;
}

namespace cairn::tools::ckpt {

// Adds all of them to `cairn ckpt`; the one that is chosen runs in CLI's callback, and leaves its
// exit status in `status`.
void add_commands(CLI::App& ckpt, int& status);

// A `path` is a checkpoint, or a folder of them or of a run: what is said of one checkpoint is then
// said of the newest.
int list(const std::string& path, Form form);
int show(const std::string& path, Form form);

// In this and the requests below `folders` are those of storage::DatabaseFolders.
struct VerifyRequest {
  std::string path;
  std::vector<std::string> folders;
  Form form = Form::kText;
};
int verify(const VerifyRequest& request);

struct GetRequest {
  std::string path, variable;
  std::vector<std::int64_t> rows;
  std::vector<std::string> folders;
  Form form = Form::kText;
};
int get(const GetRequest& request);

struct StatsRequest {
  std::string path;
  std::vector<std::string> variables;  // empty: all
  bool histogram = false;
  std::vector<std::string> folders;
  Form form = Form::kText;
};
int stats(const StatsRequest& request);

struct DiffRequest {
  std::string a, b;
  std::vector<std::string> folders;
  Form form = Form::kText;
};
int diff(const DiffRequest& request);

// A new checkpoint of all rows of another one: `shards` databases.
struct RewriteRequest {
  std::string path;
  std::string out;  // its folder; empty: the next of the folder that `path` lies in
  std::uint32_t shards = 1;
  std::vector<std::string> folders;
  Disk::SingleWriter single = Disk::SingleWriter::kNo;  // as CheckpointPolicy's
  Form form = Form::kText;
};
int reshard(const RewriteRequest& request);
// Makes a delta full, in its place.
int consolidate(const std::string& path, Form form);

struct PruneRequest {
  std::string folder;
  std::uint64_t keep_last = 0, keep_every = 0;  // 0: not asked for
  bool unfinished = false;  // rows and uploads that no checkpoint is made of, too
  bool dry_run = false;
  std::vector<std::string> folders;
  Form form = Form::kText;
};
int prune(const PruneRequest& request);

struct RepairRequest {
  std::string path, out;  // as RewriteRequest has it
  std::vector<std::string> folders;
  Disk::SingleWriter single = Disk::SingleWriter::kNo;
  Form form = Form::kText;
};
int repair(const RepairRequest& request);

struct WatchRequest {
  std::string folder;
  std::uint64_t count = 0;  // ends after so many; 0: never
  double timeout_s = 0;     // 0: none
  Form form = Form::kText;
};
int watch(const WatchRequest& request);

struct CopyRequest {
  std::string source, target;  // the second is a folder of checkpoints
  std::vector<std::string> folders;
  Disk::SingleWriter single = Disk::SingleWriter::kNo;
  Form form = Form::kText;
};
int copy(const CopyRequest& request);

struct ExportRequest {
  std::string path, file;
  std::vector<std::string> variables;  // empty: all
  bool no_slots = false;
  std::string untouched = "error";  // or "zeros", "keys": for rows that the checkpoint lacks
  std::uint64_t shard_bytes = 0;    // 0: one file
  std::vector<std::string> folders;
  Form form = Form::kText;
};
int export_arrays(const ExportRequest& request);

struct ImportRequest {
  std::string file, out;
  std::vector<std::string> rows;  // "NAME=N": how many ids a hashed variable may have
  std::string optimizer;          // of a bundle: whose "m" and "v" are
  Disk::SingleWriter single = Disk::SingleWriter::kNo;
  Form form = Form::kText;
};
int import_arrays(const ImportRequest& request);

}  // namespace cairn::tools::ckpt
