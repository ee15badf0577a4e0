// Writes the seeds of every target from real messages and files: fuzz_make_corpus
// tests/fuzz/corpus. Run it in the repository's root after a format has changed; what fuzzing has
// found beside them stays.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "core/base/program.h"
#include "rpc/loop/error_wire.h"
#include "rpc/net/hello.h"
#include "tests/fuzz/corpus_seeds.h"
#include "tests/fuzz/served_ps.h"

namespace cairn::fuzz {
namespace {

namespace fs = std::filesystem;

fs::path corpus;

// A message of these words in one segment.
std::string words(unsigned choice, const std::vector<std::uint64_t>& all) {
  const std::uint32_t head[2] = {0, static_cast<std::uint32_t>(all.size())};
  std::string bytes(1, static_cast<char>(choice));
  bytes.append(reinterpret_cast<const char*>(head), sizeof head);
  return bytes.append(reinterpret_cast<const char*>(all.data()), 8 * all.size());
}
// A pointer to a struct of pointers, `offset` words on; to a list of structs; the head of such a
// list, 2^29 - 1 empty structs long.
constexpr std::uint64_t struct_pointer(std::uint64_t offset, std::uint64_t pointers) {
  return offset << 2 | pointers << 48;
}
constexpr std::uint64_t list_pointer(std::uint64_t offset) {
  return offset << 2 | 1 | std::uint64_t{7} << 32;
}
constexpr std::uint64_t kEmptyStructs = ((std::uint64_t{1} << 29) - 1) << 2;

// Lists that claim to be long and take no bytes.
void amplifiers() {
  seed("reply", "amplified", words(0, {struct_pointer(0, 1), list_pointer(0), kEmptyStructs}));
  seed("lane_message", "amplified-layout",
       words(0, {struct_pointer(0, 1), struct_pointer(0, 2), list_pointer(1), 0, kEmptyStructs}));
  seed("lane_message", "amplified-run",
       words(1, {struct_pointer(0, 1), list_pointer(0), kEmptyStructs}));
  seed("lane_message", "amplified-closure",
       words(1, {struct_pointer(0, 1), list_pointer(0) | std::uint64_t{2} << 35,
                 struct_pointer(1, 2), list_pointer(1), 0, kEmptyStructs}));
  seed("shard_message", "amplified",
       words(3, {struct_pointer(0, 4), 0, 0, struct_pointer(1, 1), 0, list_pointer(0),
                 kEmptyStructs}));
}

void hellos() {
  auto say = [](const std::string& name, const std::vector<std::uint8_t>& bytes) {
    seed("hello", name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  rpc::Hello hello = hello_to_shard();
  say("worker", rpc::encode(hello));
  hello.version = 9;
  say("version", rpc::encode(hello));
  rpc::HelloReply reply;
  reply.accepted = true;
  reply.endpoints = 3;
  say("accepted", rpc::encode(reply));
  reply.accepted = false;
  reply.reason = "/job:ps/task:1 refuses /job:worker/task:2: the tokens differ";
  say("refused", rpc::encode(reply));
}

void error_texts() {
  auto say = [](const std::string& name, const ErrorParts& parts) {
    const kj::Exception error = rpc::to_kj(parts);
    seed("error_text", name, std::string(1, '\0') + error.getDescription().cStr());
  };
  say("plain", {Code::kAborted, "closure 3 pulled from lineage 4", "/job:ps/task:1"});
  say("input", {Code::kInvalidArgument, "cell 3", "/job:worker/task:0", 12});
  say("internal", {Code::kInternal, "a check of the peer's own", "/job:ps/task:0"});
  seed("error_text", "remote", std::string("\2remote exception: remote exception: {cairn 3 0 }no"));
  seed("error_text", "foreign", std::string("\1Peer disconnected."));
}

}  // namespace

void set_corpus(const std::string& folder) { corpus = folder; }

void seed(const std::string& target, const std::string& name, std::string_view bytes) {
  fs::create_directories(corpus / target);
  std::ofstream(corpus / target / ("seed-" + name), std::ios::binary) << bytes;
}

}  // namespace cairn::fuzz

int main(int argc, char** argv) {
  return cairn::run_program("fuzz_make_corpus", [&] {
    if (argc != 2) {
      std::cerr << "fuzz_make_corpus FOLDER: writes the seeds there\n";
      return 2;
    }
    cairn::fuzz::set_corpus(argv[1]);
    cairn::fuzz::hellos();
    cairn::fuzz::error_texts();
    cairn::fuzz::seeds_of_data();
    cairn::fuzz::seeds_of_files();
    cairn::fuzz::seeds_of_calls();
    cairn::fuzz::amplifiers();
    return 0;
  });
}
