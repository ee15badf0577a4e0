// Shared by the files that write seeds: how a seed is written, and which file writes which.
#pragma once
#include <capnp/message.h>
#include <capnp/serialize.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::fuzz {

// Into the folder of the target, as "seed-NAME". The corpus is where set_corpus() says.
void set_corpus(const std::string& folder);
void seed(const std::string& target, const std::string& name, std::string_view bytes);

inline std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A root struct as the target's message.
template <typename T, typename Fill>
std::string message(unsigned choice, Fill fill) {
  capnp::MallocMessageBuilder builder;
  fill(builder.initRoot<T>());
  const auto words = capnp::messageToFlatArray(builder);
  const auto bytes = words.asBytes();
  return std::string(1, static_cast<char>(choice)) +
         std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

void seeds_of_data();   // corpus_data.cc: CSV, lines, records
void seeds_of_files();  // corpus_files.cc: manifests, row blocks, jobs, CSV, datasets, graphs
void seeds_of_calls();  // corpus_calls.cc: what the services' calls and replies say, whole streams

}  // namespace cairn::fuzz
