// Made-up data for benchmarks and trials: as large as wanted, and with an upper bound on what a
// model can learn from it, which is printed so that a trained model's AUC can be evaluated.
#include "tools/cli/generate_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "core/disk/output_file.h"
#include "data/format/criteo_like.h"
#include "tools/job/train/user_files.h"

namespace cairn::tools {
namespace {

struct Request {
  std::string path, format = "records";
  std::int64_t rows = 0, first = 0, table_rows_max = 2'000'000;
  bool overwrite = false;
  CriteoLikeOptions options;
};

// The file is looked at before anything is made: a refusal after an hour of work would be a waste.
int generate(const Request& request) {
  verify_new_file(request.path, request.overwrite ? Overwrite::kYes : Overwrite::kNo);
  CriteoLikeOptions options = request.options;
  options.table_rows = criteo_table_rows(request.table_rows_max);
  const CriteoLike clicks(options);
  const auto write = request.format == "tsv" ? write_criteo_tsv : write_criteo_records;
  const CriteoSummary made =
      write(clicks, request.first, request.first + request.rows, request.path);
  // The data may go to standard output; the summary must not mix with it.
  std::FILE* const told = output_place(request.path).in_place ? stderr : stdout;
  std::fprintf(told,
               "%s: %lld rows, %.1f %% positive; the hidden model's own AUC is %.4f, its log loss "
               "%.4f: none can do better\n",
               request.path.c_str(), static_cast<long long>(made.rows), 100 * made.positives,
               made.auc, made.log_loss);
  return 0;
}

}  // namespace

// The request is shared with the callback, which runs after this function has returned. Bounds keep
// row numbers and table sizes within their types.
void add_generate_command(CLI::App& app, int& status) {
  auto* generate_app = app.add_subcommand("generate", "Make up data of a known kind");
  generate_app->require_subcommand(1);
  auto* criteo = generate_app->add_subcommand(
      "criteo-like",
      "Click logs of the shape of Criteo's: 13 counts, 26 ids, and a label from a hidden model");
  auto request = std::make_shared<Request>();
  criteo->add_option("path", request->path, "The file to write")->required();
  criteo->add_option("--rows", request->rows, "Examples")
      ->required()
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 48));
  criteo
      ->add_option("--first", request->first,
                   "The number of the first: another file goes on where one ended")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 48))
      ->capture_default_str();
  criteo
      ->add_option("--format", request->format, "records (160 bytes each) or tsv (as Criteo's own)")
      ->check(CLI::IsMember({"records", "tsv"}))
      ->capture_default_str();
  criteo
      ->add_option("--seed", request->options.seed,
                   "Of ids, labels and the hidden model: test data take the training data's")
      ->capture_default_str();
  criteo->add_option("--exponent", request->options.exponent, "Of the ids' power law; 0: uniform")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  criteo
      ->add_option("--table-rows-max", request->table_rows_max,
                   "Larger tables are cut to this; the largest has 10,131,227 rows")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
      ->capture_default_str();
  criteo->add_flag("--overwrite", request->overwrite, "Replace a file that is there already");
  criteo->callback([request, &status] { status = generate(*request); });
}

}  // namespace cairn::tools
