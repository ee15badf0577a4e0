#include "tools/export/export_candidates.h"

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "core/graph/ops.h"
#include "data/dataset/dataset_iterator.h"
#include "model/saved/loaded_model.h"
#include "serving/retrieval/hnsw_index.h"
#include "tools/ckpt/format/array_file.h"
#include "tools/job/model/job_of_model.h"

namespace cairn::tools {
namespace {

constexpr const char* kOutput = "candidate";

// The distinct candidates so far, numbers or texts.
class Seen {
 public:
  // Whether row `row` of the column is the first of its candidate.
  bool add(const Tensor& column, std::size_t row) {
    if (column.dtype() != DType::kString)
      return numbers_.insert(column.values<std::int64_t>()[row]).second;
    const std::string& text = column.string_values()[row];
    if (!texts_.insert(text).second) return false;
    text_bytes_ += text.size();
    return true;
  }
  std::int64_t count() const { return static_cast<std::int64_t>(numbers_.size() + texts_.size()); }
  std::uint64_t text_bytes() const { return text_bytes_; }

 private:
  std::unordered_set<std::int64_t> numbers_;
  std::unordered_set<std::string> texts_;
  std::uint64_t text_bytes_ = 0;
};

class Candidates {
 public:
  explicit Candidates(const CandidateRequest& request)
      : request_(request),
        model_(LoadedModel::load(request.model, request.device)),
        job_(job_of_model(model_.about(), request.files, request.skip_bad_rows)) {
    is_index_ = request.out.ends_with(".hnsw");
    if (!is_index_ && !request.out.ends_with(".npz"))
      throw InvalidArgumentError(
          str("\"", request.out, "\" ends neither in .npz nor in .hnsw, an index of hnswlib"));
    const auto& outputs = model_.about().outputs;
    const auto found = std::ranges::find(outputs, kOutput, &ColumnSpec::name);
    if (job_.model.objective != "retrieval" || found == outputs.end())
      throw FailedPreconditionError(str("the model in ", request.model, " is no retrieval model (",
                                        "model.objective is \"", job_.model.objective,
                                        "\"), so that it has no candidates"));
    output_ = static_cast<std::size_t>(found - outputs.begin());
    width_ = found->type.shape[1];
    place_ = rows().element_spec().find(job_.data.candidate);
    for (const std::string& file : {request.out, request.out + ".ids.npz"})
      if (system_disk().exists(file)) throw AlreadyExistsError(str(file, " exists already"));
  }

  CandidateExport write() {
    const Seen all = count();
    if (all.count() == 0) throw InvalidArgumentError("the files have no example");
    CandidateExport made{{request_.out}, all.count(), width_};
    if (is_index_) made.files.push_back(request_.out + ".ids.npz");
    ckpt::ArrayWriter arrays(made.files.back(), ckpt::ArrayFormat::kNpz, infos(all), {});
    std::unique_ptr<serving::HnswIndex> index;
    if (is_index_)
      index = std::make_unique<serving::HnswIndex>(width_, all.count(), request_.links,
                                                   request_.ef_construction);
    fill(arrays, index.get());
    if (index != nullptr) index->save(request_.out);
    arrays.finish();
    return made;
  }

 private:
  // The files as they are: no feature keeps a text.
  Dataset rows() const { return raw_examples(job_).batch(request_.batch); }
  // Whole numbers of any width as one.
  Tensor named(const Element& batch) const {
    const Tensor& column = batch[place_];
    if (column.dtype() == DType::kString || column.dtype() == DType::kInt64) return column;
    return cast(Array(column), DType::kInt64).eval();
  }

  Seen count() {
    Seen seen;
    const auto elements = open(rows());
    while (const auto batch = elements->next()) {
      const Tensor column = named(*batch);
      is_text_ = column.dtype() == DType::kString;
      for (std::int64_t i = 0; i < column.elements(); ++i)
        seen.add(column, static_cast<std::size_t>(i));
    }
    return seen;
  }

  std::vector<ckpt::ArrayInfo> infos(const Seen& all) const {
    std::vector<ckpt::ArrayInfo> infos;
    if (is_text_) {
      infos.push_back({"text", DType::kUint8, {static_cast<std::int64_t>(all.text_bytes())}});
      infos.push_back({"text_ends", DType::kInt64, {all.count()}});
    } else {
      infos.push_back({"ids", DType::kInt64, {all.count()}});
    }
    if (!is_index_) infos.push_back({"vectors", DType::kFloat32, {all.count(), width_}});
    return infos;
  }

  // Reads names and features side by side: both are of the same rows.
  void fill(ckpt::ArrayWriter& arrays, serving::HnswIndex* index) {
    const Dataset prepared = labelled_examples(job_, model_.about()).batch(request_.batch);
    const ElementSpec spec = prepared.element_spec();
    const auto features = open(prepared), names_read = open(rows());
    Seen seen;
    std::int64_t text_end = 0;
    while (const auto batch = features->next()) {
      const auto names_batch = names_read->next();
      CAIRN_CHECK(names_batch.has_value(), "the files have fewer rows the second time");
      Element taken;
      for (const ColumnSpec& wanted : model_.about().input.columns)
        taken.push_back((*batch)[spec.find(wanted.name)]);
      const Tensor vectors = model_.predict(taken)[output_], column = named(*names_batch);
      for (std::int64_t i = 0; i < column.elements(); ++i) {
        const auto row = static_cast<std::size_t>(i);
        const std::int64_t place = seen.count();
        if (!seen.add(column, row)) continue;
        put_name(arrays, column, row, text_end);
        const auto vector = vectors.values<float>().subspan(row * static_cast<std::size_t>(width_),
                                                            static_cast<std::size_t>(width_));
        if (index != nullptr)
          index->add(vector, static_cast<std::uint64_t>(place));
        else
          arrays.append(is_text_ ? 2 : 1, reinterpret_cast<const std::byte*>(vector.data()),
                        vector.size_bytes());
      }
    }
  }

  void put_name(ckpt::ArrayWriter& arrays, const Tensor& column, std::size_t row,
                std::int64_t& text_end) const {
    if (!is_text_) {
      const std::int64_t id = column.values<std::int64_t>()[row];
      return arrays.append(0, reinterpret_cast<const std::byte*>(&id), sizeof id);
    }
    const std::string& text = column.string_values()[row];
    arrays.append(0, reinterpret_cast<const std::byte*>(text.data()), text.size());
    text_end += static_cast<std::int64_t>(text.size());
    arrays.append(1, reinterpret_cast<const std::byte*>(&text_end), sizeof text_end);
  }

  const CandidateRequest& request_;
  LoadedModel model_;
  Job job_;
  bool is_index_ = false, is_text_ = false;
  std::size_t output_ = 0, place_ = 0;  // of the vector, and of the candidate's name
  std::int64_t width_ = 0;
};

}  // namespace

CandidateExport export_candidates(const CandidateRequest& request) {
  return Candidates(request).write();
}

}  // namespace cairn::tools
