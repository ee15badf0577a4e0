#include "tools/cli/devices_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/base/machine.h"
#include "core/base/processors.h"
#include "core/kernels/chosen_devices.h"

namespace cairn::tools {
namespace {

// Returns a field of /proc/cpuinfo (proc(5)) for the first processor: "model name" or "flags".
std::string processor_line(const std::string& what) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(what) && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "";
}

std::string processor_model() {
  const std::string model = processor_line("model name");
  return model.empty() ? "a processor without a name" : model;
}

// Those that our kernels, or oneDNN's, have loops for; newest last.
std::vector<std::string> instruction_sets() {
  constexpr std::pair<std::string_view, const char*> kKnown[] = {{" avx2 ", "AVX2"},
                                                                 {" fma ", "FMA"},
                                                                 {" avx512f ", "AVX-512"},
                                                                 {" avx512_bf16 ", "AVX-512 BF16"},
                                                                 {" amx_bf16 ", "AMX BF16"}};
  const std::string flags = str(" ", processor_line("flags"), " ");
  std::vector<std::string> known;
  for (const auto& [flag, name] : kKnown)
    if (flags.find(flag) != std::string::npos) known.emplace_back(name);
  return known;
}

// Where replicas sum values if each has a GPU, and how: "there, by NCCL 2.28.3".
std::string sums_text(const cuda::OpenedDevices& found) {
  if (!found.sums) return "";
  const cuda::SumFigures sums = found.sums();
  return (sums.on_devices ? "there, " : "in the host's memory: ") + sums.text;
}

// How trees of elementwise operations are computed there: "compiled by NVRTC 13.0".
std::string elementwise_text(const cuda::OpenedDevices& found) {
  if (!found.compiled) return "";
  const cuda::CompiledFigures figures = found.compiled();
  return (figures.compiles ? "compiled " : "interpreted: ") + figures.text;
}

Json described() {
  const cuda::OpenedDevices& found = gpus();
  Json gpus = Json::array();
  for (const cuda::OpenedDevice& gpu : found.devices)
    gpus.push_back({{"name", gpu.device->name()},
                    {"model", gpu.model},
                    {"memory_bytes", gpu.memory_bytes},
                    {"compute_capability",
                     str(gpu.compute_capability / 10, ".", gpu.compute_capability % 10)}});
  const auto or_null = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  return {{"cpu",
           {{"model", processor_model()},
            {"processors", usable_processors()},
            {"memory_bytes", machine_memory_bytes()},
            {"instruction_sets", instruction_sets()}}},
          {"gpus", std::move(gpus)},
          {"replicas_sum", or_null(sums_text(found))},
          {"elementwise", or_null(elementwise_text(found))},
          {"not_used", or_null(found.absent)}};
}

void print() {
  std::string sets;
  for (const std::string& one : instruction_sets()) sets += ", " + one;
  const std::size_t count = usable_processors();
  std::printf("cpu    %s, %zu logical processor%s, %.1f GiB%s\n", processor_model().c_str(), count,
              count == 1 ? "" : "s", static_cast<double>(machine_memory_bytes()) / 0x1p30,
              sets.c_str());
  const cuda::OpenedDevices& found = gpus();
  for (const cuda::OpenedDevice& gpu : found.devices)
    std::printf("%-6s %s\n", std::string(gpu.device->name()).c_str(), gpu_text(gpu).c_str());
  if (const std::string text = sums_text(found); !text.empty())
    std::printf("replicas that have a GPU each sum values %s\n", text.c_str());
  if (const std::string text = elementwise_text(found); !text.empty())
    std::printf("elementwise operations on GPUs are %s\n", text.c_str());
  if (found.absent.empty()) return;
  std::printf("%s: %s\n", found.devices.empty() ? "no GPU is used" : "not used",
              found.absent.c_str());
}

}  // namespace

void add_devices_command(CLI::App& app, int& status) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "devices", "Show what this machine can compute on, and what is not used, and why");
  command->add_flag("--json", *as_json, "As JSON");
  command->callback([as_json, &status] {
    if (*as_json)
      std::printf("%s\n", json_text(described(), 2).c_str());
    else
      print();
    status = 0;
  });
}

}  // namespace cairn::tools
