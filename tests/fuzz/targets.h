// The doors through which bytes of others come in, one function each: any input is read, used, or
// refused with a typed error.
//
// A target is a libFuzzer program in the `fuzz` preset (fuzzer.cc) and replays
// tests/fuzz/corpus/NAME in the others (corpus_test.cc). What escapes from it is a defect: an
// exception of another kind, an InternalError (our own check), a crash, a hang.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace cairn::fuzz {

using Bytes = std::span<const std::byte>;

// tools: a file of arrays: safetensors, npz, the index of a TensorFlow bundle
void arrays(Bytes input);
// data: a CSV file, plain or gzip, under a schema chosen by its first byte
void csv(Bytes input);
// data: a pipeline's description and an iterator state: opened and read
void dataset(Bytes input);
void error_text(Bytes input);  // rpc: the text of a failed call
void graph(Bytes input);       // core: a function: parsed, verified, planned, run
void hello(Bytes input);       // rpc: the greeting and its reply
// serving: HTTP requests of one connection, in pieces
void http_request(Bytes input);
void idx(Bytes input);           // data: an IDX file, plain or gzip
void infer_body(Bytes input);    // serving: a request of the Open Inference Protocol
void job(Bytes input);           // tools: a job file
void json_lines(Bytes input);    // data: a file of JSON lines
void lane_message(Bytes input);  // worker: layout, closure, and what a lane does with them
void libsvm(Bytes input);        // data: a file of libsvm's lines
void manifest(Bytes input);      // storage: MANIFEST.json
void memory_text(Bytes input);   // data: two texts in memory, by the same open stages
void reply(Bytes input);         // coordinator: what ps and workers answer
void row_block(Bytes input);     // storage: the records of a checkpoint's database, keys and values
void rpc_stream(Bytes input);    // rpc: everything after an accepted hello, served by a real ps
// rpc, ps, worker: calls in a row, from several peers, served by a real ps and a real worker
void sequence(Bytes input);
// serving: a body of TensorFlow Serving's :predict or :classify
void tf_predict_body(Bytes input);
void text_lines(Bytes input);  // data: a file of text lines, plain or gzip
void tfrecord(Bytes input);    // data: a TFRecord file of examples, or one example
// ps: pull, push, configure, restore, and what a shard does with them
void shard_message(Bytes input);

struct Target {
  std::string_view name;
  void (*run)(Bytes);
};
inline constexpr Target kTargets[] = {{"arrays", arrays},
                                      {"csv", csv},
                                      {"dataset", dataset},
                                      {"error_text", error_text},
                                      {"graph", graph},
                                      {"hello", hello},
                                      {"http_request", http_request},
                                      {"idx", idx},
                                      {"infer_body", infer_body},
                                      {"job", job},
                                      {"json_lines", json_lines},
                                      {"lane_message", lane_message},
                                      {"libsvm", libsvm},
                                      {"manifest", manifest},
                                      {"memory_text", memory_text},
                                      {"reply", reply},
                                      {"row_block", row_block},
                                      {"rpc_stream", rpc_stream},
                                      {"sequence", sequence},
                                      {"shard_message", shard_message},
                                      {"text_lines", text_lines},
                                      {"tf_predict_body", tf_predict_body},
                                      {"tfrecord", tfrecord}};

}  // namespace cairn::fuzz
