#include "tools/cli/model_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "core/base/json.h"
#include "model/saved/loaded_model.h"
#include "tools/cli/model_options.h"
#include "tools/export/export_candidates.h"
#include "tools/export/export_onnx.h"
#include "tools/job/model/calibration.h"
#include "tools/job/model/trained_model.h"

namespace cairn::tools {
namespace {

// Checksums are compared before anything is shown, too.
int show_model(const std::string& path) {
  const SavedModel model = read_saved_model(model_at(path));
  std::printf("%s\n%s", model.folder.c_str(), signature_text(model).c_str());
  if (!model.label.empty()) std::printf("  predicts \"%s\"\n", model.label.c_str());
  if (const std::string text = calibration_of(model); !text.empty())
    std::printf("  %s\n", text.c_str());
  std::printf(model.examples.defined() ? "  reads files in the form of its training data\n"
                                       : "  reads no files: it was saved without examples\n");
  return 0;
}

// Beyond the checksums, all of it must make a model.
int verify_model(const std::string& path) {
  const LoadedModel model = LoadedModel::load(model_at(path));
  std::printf("%s: clean (%zu variables, %lld parameters)\n", model.about().folder.c_str(),
              model.about().variables.size(), static_cast<long long>(model.about().parameters()));
  return 0;
}

void add_look(CLI::App& parent, const std::string& name, const std::string& what,
              int (*run)(const std::string& path), int& status) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = parent.add_subcommand(name, what);
  command->add_option("model", *path, "A saved model, or the folder of its run")->required();
  command->callback([path, run, &status] { status = run(*path); });
}

struct ExportRequest {
  std::string model, out;
  bool as_json = false;
};

// ONNX is the one format there is, so that the file's name says it.
int export_model(const ExportRequest& request) {
  const OnnxExport made = export_onnx(model_at(request.model), request.out);
  if (request.as_json) {
    const Json told = {{"files", made.files},           {"bytes", made.bytes},
                       {"inputs", made.inputs},         {"outputs", made.outputs},
                       {"row_inputs", made.row_inputs}, {"checks_left_out", made.checks_left_out}};
    std::printf("%s\n", json_text(told, 2).c_str());
    return 0;
  }
  for (const std::string& file : made.files) std::printf("%s\n", file.c_str());
  std::printf("%zu inputs, %zu outputs, %.2f MB\n", made.inputs.size(), made.outputs.size(),
              static_cast<double>(made.bytes) / 1e6);
  for (const std::string& input : made.row_inputs)
    std::printf(
        "the input \"%s\" takes rows, which the model finds by id here: its metadata says "
        "of which column, and where they are\n",
        input.c_str());
  if (made.checks_left_out > 0)
    std::printf(
        "%lld checks that end a prediction here, such as of numbers that are not finite, "
        "are left out\n",
        static_cast<long long>(made.checks_left_out));
  return 0;
}

void add_export(CLI::App& parent, int& status) {
  auto request = std::make_shared<ExportRequest>();
  CLI::App* command =
      parent.add_subcommand("export", "Write a model as ONNX, for other programs to predict with");
  command->add_option("model", request->model, "A saved model, or the folder of its run")
      ->required();
  command
      ->add_option("--out", request->out,
                   "The file to write, NAME.onnx; what does not fit into it lies beside it")
      ->required();
  command->add_flag("--json", request->as_json, "As JSON");
  command->callback([request, &status] { status = export_model(*request); });
}

struct CandidatesRequest : ModelOptions {
  std::string out;
  int links = 16, ef_construction = 200;
};

int write_candidates(const CandidatesRequest& request) {
  const CandidateExport made = export_candidates({.from = {.model = model_at(request.model),
                                                           .files = request.paths(),
                                                           .batch = request.batch,
                                                           .skip_bad_rows = request.skip_bad_rows,
                                                           .device = request.device},
                                                  .out = request.out,
                                                  .links = request.links,
                                                  .ef_construction = request.ef_construction});
  for (const std::string& file : made.files) std::printf("%s\n", file.c_str());
  std::printf("%lld candidates, vectors of %lld numbers\n", static_cast<long long>(made.candidates),
              static_cast<long long>(made.width));
  return 0;
}

void add_candidates(CLI::App& parent, int& status) {
  auto request = std::make_shared<CandidatesRequest>();
  CLI::App* command = parent.add_subcommand(
      "candidates", "Write the vectors of a retrieval model's candidates, for an index");
  add_model_options(*command, *request,
                    "Files in the form of the training data, with the candidates; they are read "
                    "twice");
  command
      ->add_option("--out", request->out,
                   "The file to write: NAME.npz, or NAME.hnsw, an index that hnswlib loads")
      ->required();
  command->add_option("--links", request->links, "Of an index: the links of a vector (M)")
      ->check(CLI::Range(2, 256))
      ->capture_default_str();
  command
      ->add_option("--ef-construction", request->ef_construction,
                   "Of an index: how many neighbours are looked at for a vector")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command->callback([request, &status] { status = write_candidates(*request); });
}

}  // namespace

void add_model_command(CLI::App& app, int& status) {
  CLI::App* model = app.add_subcommand("model", "Look at saved models, and export them");
  model->require_subcommand(1);
  add_look(*model, "show", "Show what a model takes and gives", show_model, status);
  add_look(*model, "verify", "Read every byte, compare it with its checksum, and load the model",
           verify_model, status);
  add_export(*model, status);
  add_candidates(*model, status);
}

}  // namespace cairn::tools
