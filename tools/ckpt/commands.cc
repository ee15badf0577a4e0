// The command lines of `cairn ckpt`. What the callbacks need is shared with CLI's objects, which
// outlive these functions.
#include "tools/ckpt/commands.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>

#include "core/base/error.h"

namespace cairn::tools::ckpt {
namespace {

constexpr int kWrongUse = 2;
constexpr const char* kOne = "A checkpoint, or a folder of them or of a run: the newest";
constexpr const char* kAll = "A checkpoint, or a folder of them or of a run: all of them";

// Arguments that mean nothing here are wrong use as much as flags that do not exist.
int run_checked(const std::function<int()>& work) {
  try {
    return work();
  } catch (const InvalidArgumentError& error) {
    std::fprintf(stderr, "cairn: %s\n", error.what());
    return kWrongUse;
  }
}

// The folders of checkpoints are taken apart at their slashes.
void add_path(CLI::App& command, const std::string& name, std::string& path,
              const std::string& what) {
  CLI::Option* option = command.add_option(name, path, what)->capture_default_str();
  option->transform([](std::string given) {
    while (given.size() > 1 && given.back() == '/') given.pop_back();
    return given;
  });
}

void add_folders(CLI::App& command, std::vector<std::string>& folders) {
  command
      .add_option("--database-folder", folders,
                  "ps:1=FOLDER: where the local folder of that ps is mounted or was copied to, if "
                  "rows lie on its machine; once for each ps")
      ->expected(1)
      ->take_all();
}

template <typename Request>
class Subcommand {
 public:
  using Run = int (*)(const Request&);
  Subcommand(CLI::App& parent, const std::string& name, const std::string& what, Run run,
             int& status)
      : request_(std::make_shared<Request>()),
        as_json_(std::make_shared<bool>(false)),
        command_(parent.add_subcommand(name, what)) {
    command_->add_flag("--json", *as_json_, "As JSON");
    command_->callback([request = request_, as_json = as_json_, run, &status] {
      request->form = *as_json ? Form::kJson : Form::kText;
      status = run_checked([&] { return run(*request); });
    });
  }
  CLI::App& command() { return *command_; }
  Request& request() { return *request_; }

 private:
  std::shared_ptr<Request> request_;
  std::shared_ptr<bool> as_json_;
  CLI::App* command_;
};

struct PathRequest {
  std::string path = "checkpoints";
  Form form = Form::kText;
};
template <int (*kRun)(const std::string&, Form)>
void add_plain(CLI::App& parent, const std::string& name, const std::string& what,
               const std::string& path_is, int& status) {
  Subcommand<PathRequest> made(
      parent, name, what,
      [](const PathRequest& request) { return kRun(request.path, request.form); }, status);
  add_path(made.command(), "path", made.request().path, path_is);
}

void add_readers(CLI::App& ckpt, int& status) {
  add_plain<list>(ckpt, "ls", "List the checkpoints of a folder",
                  "A folder of checkpoints, or a run's", status);
  add_plain<show>(ckpt, "show", "Show what a checkpoint holds", kOne, status);
  Subcommand<VerifyRequest> sound(
      ckpt, "verify", "Read every byte and compare it with the manifest", verify, status);
  add_path(sound.command(), "path", sound.request().path = "checkpoints", kAll);
  add_folders(sound.command(), sound.request().folders);

  Subcommand<GetRequest> one(ckpt, "get",
                             "Print rows with their slots; exit status 1 if one of them "
                             "was never touched",
                             get, status);
  add_path(one.command(), "path", one.request().path, kOne);
  one.command().get_option("path")->required();
  one.command().add_option("variable", one.request().variable, "Its name")->required();
  one.command()
      .add_option("rows", one.request().rows, "Rows, or ids of a hashed variable")
      ->required();
  add_folders(one.command(), one.request().folders);

  Subcommand<StatsRequest> all(ckpt, "stats",
                               "Bounds, means and histograms of variables and slots; "
                               "exit status 1 if there is a NaN or Inf",
                               stats, status);
  add_path(all.command(), "path", all.request().path = "checkpoints", kOne);
  all.command().add_option("variables", all.request().variables,
                           "Their names; all if there is none");
  all.command().add_flag("--histogram", all.request().histogram,
                         "Counts by sign and power of two as well (always with --json)");
  add_folders(all.command(), all.request().folders);

  Subcommand<DiffRequest> two(ckpt, "diff",
                              "Compare two checkpoints row by row; exit status 1 if "
                              "they differ",
                              diff, status);
  add_path(two.command(), "a", two.request().a, kOne);
  add_path(two.command(), "b", two.request().b, kOne);
  two.command().get_option("a")->required();
  two.command().get_option("b")->required();
  add_folders(two.command(), two.request().folders);
}

void add_single(CLI::App& command, Disk::SingleWriter& single) {
  command.add_flag_callback(
      "--store-single-writer", [&single] { single = Disk::SingleWriter::kYes; },
      "No other program saves there: for a bucket whose store has no conditional writes");
}

void add_writers(CLI::App& ckpt, int& status) {
  constexpr const char* kOut =
      "The folder of the new checkpoint; without it, the next one of the folder it comes from";
  Subcommand<RewriteRequest> cut(ckpt, "reshard", "Write all rows anew, in so many databases",
                                 reshard, status);
  add_path(cut.command(), "path", cut.request().path, kOne);
  cut.command().get_option("path")->required();
  cut.command()
      .add_option("--shards", cut.request().shards, "Databases")
      ->required()
      ->check(CLI::Range(1, 1024));
  add_path(cut.command(), "--out", cut.request().out, kOut);
  add_single(cut.command(), cut.request().single);
  add_folders(cut.command(), cut.request().folders);

  Subcommand<RewriteRequest> one(ckpt, "merge", "Write all rows anew, in one database", reshard,
                                 status);
  add_path(one.command(), "path", one.request().path, kOne);
  one.command().get_option("path")->required();
  add_path(one.command(), "--out", one.request().out, kOut);
  add_single(one.command(), one.request().single);
  add_folders(one.command(), one.request().folders);

  add_plain<consolidate>(ckpt, "consolidate", "Make a delta a full checkpoint, in its place", kOne,
                         status);

  Subcommand<RepairRequest> sound(ckpt, "repair",
                                  "Write what is sound of a damaged checkpoint into "
                                  "a new one, and say what is lost; exit status 1 if anything is",
                                  repair, status);
  add_path(sound.command(), "path", sound.request().path, kOne);
  sound.command().get_option("path")->required();
  add_path(sound.command(), "--out", sound.request().out, kOut);
  add_single(sound.command(), sound.request().single);
  add_folders(sound.command(), sound.request().folders);

  Subcommand<CopyRequest> there(ckpt, "copy",
                                "Copy checkpoints to another folder; begun again, it "
                                "goes on",
                                copy, status);
  add_path(there.command(), "source", there.request().source, kAll);
  add_path(there.command(), "target", there.request().target, "A folder of checkpoints");
  add_single(there.command(), there.request().single);
  add_folders(there.command(), there.request().folders);
  there.command().get_option("source")->required();
  there.command().get_option("target")->required();
}

void add_formats(CLI::App& ckpt, int& status) {
  Subcommand<ExportRequest> out(ckpt, "export",
                                "Write variables and slots as arrays, for other "
                                "programs",
                                export_arrays, status);
  add_path(out.command(), "path", out.request().path, kOne);
  out.command().get_option("path")->required();
  out.command()
      .add_option("file", out.request().file, "A file that ends in .safetensors or .npz")
      ->required();
  out.command().add_option("--variables", out.request().variables, "Their names; all without it");
  out.command().add_flag("--no-slots", out.request().no_slots, "Parameters alone");
  out.command()
      .add_option(
          "--untouched", out.request().untouched,
          "Rows that were never touched, and so are not in the checkpoint: an error, zeros, "
          "or leave them out and write keys")
      ->check(CLI::IsMember({"error", "zeros", "keys"}))
      ->capture_default_str();
  out.command().add_option("--shard-bytes", out.request().shard_bytes,
                           "Several files of about so many bytes, with an index");
  add_folders(out.command(), out.request().folders);

  Subcommand<ImportRequest> in(ckpt, "import", "Make a checkpoint of a file of arrays",
                               import_arrays, status);
  in.command()
      .add_option("file", in.request().file,
                  "A file that ends in .safetensors or .npz, the index of several, or the .index "
                  "of a TensorFlow bundle")
      ->required();
  add_path(in.command(), "--out", in.request().out, "The folder of the new checkpoint");
  in.command().get_option("--out")->required();
  add_single(in.command(), in.request().single);
  in.command().add_option("--rows", in.request().rows,
                          "NAME=N: a hashed variable's ids are below N");
  in.command().add_option("--optimizer", in.request().optimizer,
                          "adam or lazy_adam: whose slots a bundle's \"m\" and \"v\" are");
}

void add_keepers(CLI::App& ckpt, int& status) {
  Subcommand<PruneRequest> old(ckpt, "prune",
                               "Remove old checkpoints, but none that a running "
                               "training needs",
                               prune, status);
  add_path(old.command(), "folder", old.request().folder, "A folder of checkpoints, or a run's");
  old.command().get_option("folder")->required();
  old.command().add_option("--keep-last", old.request().keep_last, "Keep the newest N");
  old.command().add_option("--keep-every", old.request().keep_every,
                           "Keep those whose numbers are multiples of N");
  old.command().add_flag("--unfinished", old.request().unfinished,
                         "Remove what killed saves have left, too; in a bucket only while no "
                         "training saves there, which cannot be seen");
  old.command().add_flag("--dry-run", old.request().dry_run, "Say what would go, and leave it");
  add_folders(old.command(), old.request().folders);

  Subcommand<WatchRequest> coming(ckpt, "watch", "Print each new checkpoint once it is complete",
                                  watch, status);
  add_path(coming.command(), "folder", coming.request().folder,
           "A folder of checkpoints, or a run's");
  coming.command().get_option("folder")->required();
  coming.command().add_option("--count", coming.request().count, "End after N of them");
  coming.command().add_option("--timeout", coming.request().timeout_s,
                              "End after so many seconds: with --count, exit status 1");
}

}  // namespace

void add_commands(CLI::App& ckpt, int& status) {
  add_readers(ckpt, status);
  add_writers(ckpt, status);
  add_formats(ckpt, status);
  add_keepers(ckpt, status);
}

}  // namespace cairn::tools::ckpt
