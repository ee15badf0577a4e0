#include "tools/cli/model_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "model/saved/loaded_model.h"
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

}  // namespace

void add_model_command(CLI::App& app, int& status) {
  CLI::App* model = app.add_subcommand("model", "Look at saved models");
  model->require_subcommand(1);
  add_look(*model, "show", "Show what a model takes and gives", show_model, status);
  add_look(*model, "verify", "Read every byte, compare it with its checksum, and load the model",
           verify_model, status);
}

}  // namespace cairn::tools
