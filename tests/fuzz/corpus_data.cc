// Seeds that are files of examples.
#include <zlib.h>

#include "core/base/error.h"
#include "data/file/tfrecord_writer.h"
#include "tests/fuzz/corpus_seeds.h"

namespace cairn::fuzz {
namespace {

std::string gzip(const std::string& plain) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(plain.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

void csvs() {
  const std::string lines = "1,x,3\n0.5,\"q \"\"z\"\"\",2\n,,9\n 7 ,w|v,?\n",
                    header = "c,a,b\r\n3,1,x\r\n4,2,\"y\r\nz\"\r\n";
  seed("csv", "plain", std::string(1, 2) + lines);
  seed("csv", "header", std::string(1, 1) + header);
  seed("csv", "skipping", std::string(1, 8 | 16 | 2) + lines + "short\n1,2,3,4\n\"open");
  seed("csv", "tabs", std::string(1, 4 | 32) + "#c\n1\tx\t2\n\n3\ty\t4");
  seed("csv", "cells-of-lines",
       std::string(1, static_cast<char>(128 | 8)) + "1,\"a\nb\",2\n3,\"c\nd\ne\nf,4\n5,\"g\"h,6\n");
  seed("csv", "strict", std::string(1, static_cast<char>(128 | 32)) + "\xEF\xBB\xBF#c\n1,x\"y,2\n");
  seed("csv", "stages", std::string(1, 64 | 8) + lines + lines);
  seed("csv", "gzip", std::string(1, 2) + gzip(lines));
  seed("csv", "gzip-twice", std::string(1, 1) + gzip(header) + gzip("5,6,w\n"));
}

void text_files() {
  const std::string lines = "one\r\n\n  two \nthree";
  seed("text_lines", "plain", std::string(1, 0) + lines);
  seed("text_lines", "short", std::string(1, 1 | 4) + lines + "\nmuch too long for this\nend");
  seed("text_lines", "stages", std::string(1, 2 | 8) + "\xEF\xBB\xBF" + lines + lines);
  seed("text_lines", "gzip", std::string(1, 8) + gzip(lines + lines));
}

void libsvm_files() {
  const std::string lines = "+1 1:0.5 3:-2e3  9:7#c\n# c\n\n-1 qid:3 2:1\n0";
  seed("libsvm", "plain", std::string(1, 0) + lines);
  seed("libsvm", "queries", std::string(1, 1 | 2 | 4) + "1 qid:1 0:1\n0 qid:2 99:3\n1 2:3");
  seed("libsvm", "skipping", std::string(1, 8 | 2) + lines + " 101:1\n1 0:1\nx 1:1\n1 1\n1 2:2");
  seed("libsvm", "stages", std::string(1, 16 | 32 | 8) + lines + "\n" + lines);
}

void json_lines_files() {
  const std::string lines =
      R"({"a": 1, "b": "yes", "c": [1, -2.5e3], "d": ["x", "\u00e9\n"], "more": {"a": [null]}})"
      "\n\n"
      R"({"d":[],"b":"no","a":-9007199254740993,"c":null})";
  seed("json_lines", "plain", std::string(1, 0) + lines);
  seed("json_lines", "label", std::string(1, 1 | 4) + "\xEF\xBB\xBF" + lines + "\r\n");
  seed("json_lines", "skipping",
       std::string(1, 2 | 8) + lines + "\n{\"a\": 1, \"a\": 2}\n[1]\n{\"a\"\n" + lines);
  seed("json_lines", "missing", std::string(1, 8 | 16) + "{}\n{\"b\": null}\n" + lines);
  seed("json_lines", "gzip", std::string(1, 8) + gzip(lines + "\n" + lines));
}

void memory_texts() {
  const auto two = [](int choice, const std::string& first, std::string second) {
    second.resize(std::max(first.size(), second.size()), '\n');  // halves
    return std::string(1, static_cast<char>(choice)) + first +
           std::string(second.size() - first.size(), '\n') + second;
  };
  const std::string object = R"({"a": 1, "b": "\u00e9", "c": [1, 2.5], "d": ["x"]})";
  seed("memory_text", "csv", two(0, "1,b,2|3,x\n", "2,\"a\n\"\"b\",,x|y\n3,c,,"));
  seed("memory_text", "header",
       two(4 | 32, "a,b,c,d\n1,,,\n",
           "\xEF\xBB\xBF"
           "d,a,b,c\nx,-1,,\n"));
  seed("memory_text", "optional", two(16, "1,b,,\n", "1,,x\n,2,y\n"));
  seed("memory_text", "libsvm", two(1, "1 2:3\n", "0 1:x\n1 1:1"));
  seed("memory_text", "json", two(2, object, "[" + object + ",\n{\"a\": 2}]"));
  seed("memory_text", "json-lines",
       two(2 | 8 | 16 | 32, "[{}, 3]", object + "\n{\"a\": -1}\n" + object));
}

void tfrecord_files() {
  const std::string example = ExampleMessage()
                                  .integers("x", {1, 300})
                                  .integers("i", {-1, 2})
                                  .floats("f", {1, 2})
                                  .floats("g", {0.5f})
                                  .texts("t", {"text"})
                                  .texts("w", {"a", "", "b"})
                                  .texts("b", {"byte"})
                                  .bytes();
  const std::string small = ExampleMessage().integers("x", {7, 8}).bytes();
  seed("tfrecord", "example", std::string(1, 1) + example);
  seed("tfrecord", "small-example", std::string(1, 1 | 4) + small);
  seed("tfrecord", "file", std::string(1, 0) + framed(example) + framed(small));
  seed("tfrecord", "raw", std::string(1, 2 | 8) + framed("one") + framed("") + framed("three"));
  seed("tfrecord", "skipping",
       std::string(1, 4 | 16) + framed(small) + framed("no example") + framed(example));
  seed("tfrecord", "gzip", std::string(1, 8) + gzip(framed(small) + framed(small)));
}

void idx_files() {
  const std::string two_images("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03images,twelv", 28);
  const std::string numbers("\0\0\x0C\x01\0\0\0\x02\0\0\0\x07\xFF\xFF\xFF\xFF", 16);
  const std::string reals("\0\0\x0E\x01\0\0\0\x01\x3F\xF0\0\0\0\0\0\0", 16);
  seed("idx", "images", std::string(1, 1) + two_images);
  seed("idx", "numbers", std::string(1, 2 | 16) + numbers);
  seed("idx", "reals", std::string(1, 4) + reals);
  seed("idx", "stages", std::string(1, 1 | 8 | 16) + gzip(two_images));
}

void predict_bodies() {
  const std::string row =
      R"({"f": [1, -2.5e-3], "i": 7, "s": "\u00e9", "m": [[0.5, 1]], "b": true, )"
      R"("u": [1, 255], "r": []})";
  const std::string other =
      R"({"r": [1, -2], "s": {"b64": "aGk="}, "f": [0, 1E3], "i": -9223372036854775808, )"
      R"("u": [0, 1], "b": false, "m": [[1, 2]]})";
  seed("tf_predict_body", "rows",
       std::string(1, 0) + R"({"instances": [)" + row + "," + other + "]}");
  seed("tf_predict_body", "columns",
       std::string(1, 0) +
           R"({"inputs": {"f": [[1, 2]], "i": [1], "s": ["x"], "m": [[[1, 2]]], "b": [true], )"
           R"("u": [[]], "r": [[1, 2, 3]]}, "signature_name": "serving_default"})");
  seed("tf_predict_body", "bare",
       std::string(1, 1) + R"({"instances": [["a", {"b64": "YQ=="}], ["c", ""]], "more": [{}]})");
  seed("tf_predict_body", "not-finite",
       std::string(1, 4) + R"({"instances": [{"f": [NaN, -Infinity], "i": 7, "s": "NaN", )"
                           R"("m": [["Infinity", 1]], "b": true, "u": [1], "r": [3]}]})");
  seed("tf_predict_body", "examples",
       std::string(1, 2) +
           R"({"examples": [{"f": [1, 2], "i": true}, {"i": 3, "f": [3, 4]}], )"
           R"("context": {"s": "x", "m": [1, 2], "b": true, "u": 5, "r": [1, 2]}})");
  seed("tf_predict_body", "recommend",
       std::string(1, 9) + R"({"instances": [["a"], ["b"]], "k": 3, "exclude": [[17, "c"], []]})");
}

void infer_bodies() {
  const std::string json =
      R"({"id": "1", "inputs": [{"name": "f", "shape": [1, 2], "datatype": "FP32", )"
      R"("data": [[1, 2]]}, )"
      R"({"data": [0.5], "name": "h", "shape": [1], "datatype": "BF16"}, )"
      R"({"name": "s", "shape": [1], "datatype": "BYTES", "data": ["x"]}, )"
      R"({"name": "b", "shape": [1, 2], "datatype": "BOOL", "data": [true, false]}, )"
      R"({"name": "r", "shape": [2], "datatype": "INT64", "data": [5, 6]}, )"
      R"({"name": "r/row_splits", "shape": [2], "datatype": "INT64", "data": [0, 2]}], )"
      R"("outputs": [{"name": "s"}, {"name": "f", "parameters": {"binary_data": true}}]})";
  seed("infer_body", "json", std::string(1, 0) + json);
  const auto behind = [](const char* name, const char* shape, const char* datatype, int bytes) {
    return str(R"({"name": ")", name, R"(", "shape": )", shape, R"(, "datatype": ")", datatype,
               R"(", "parameters": {"binary_data_size": )", bytes, "}}");
  };
  const std::string binary =
      R"({"parameters": {"binary_data_output": true}, "inputs": [)" +
      behind("f", "[1,2]", "FP32", 8) + "," + behind("h", "[1]", "BF16", 2) + "," +
      behind("s", "[1]", "BYTES", 6) + "," + behind("b", "[1,2]", "BOOL", 2) + "," +
      behind("r", "[1]", "INT64", 8) + "," + behind("r/row_splits", "[2]", "INT64", 16) + "]}";
  const std::string bytes("\0\0\x80\x3F\0\0\0\x40\x80\x3F\2\0\0\0hi\1\0\7\0\0\0\0\0\0\0", 26);
  const std::string splits("\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16);
  seed("infer_body", "binary", std::string(1, 2) + binary + "\n" + bytes + splits);
}

}  // namespace

void seeds_of_data() {
  csvs();
  text_files();
  libsvm_files();
  json_lines_files();
  memory_texts();
  tfrecord_files();
  idx_files();
  predict_bodies();
  infer_bodies();
}

}  // namespace cairn::fuzz
