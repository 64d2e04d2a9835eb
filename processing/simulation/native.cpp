// Python extension hltnode.processing.simulation._native: the loops of the simulation that NumPy makes slow, because
// they go through many short steps (flights in the field) or carry a state from one element to the next (clusters).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace nb = nanobind;

namespace {

template <typename T>
using Column = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* message)
{
    if (!condition) throw nb::value_error(message);
}

// The field in one quarter of a plane across the beam, at the corners of squares; the other quarters mirror it.
struct FieldPlane {
    const float* corners;  // [n_x][n_y][3], T
    std::size_t n_x, n_y;
    double squares_per_mm;

    struct Vector {
        double x, y, z;
    };

    Vector at(double x, double y) const
    {
        const double u = std::min(std::abs(x) * squares_per_mm, static_cast<double>(n_x) - 1.001);
        const double v = std::min(std::abs(y) * squares_per_mm, static_cast<double>(n_y) - 1.001);
        const auto i = static_cast<std::size_t>(u);
        const auto j = static_cast<std::size_t>(v);
        const double right = u - static_cast<double>(i), upper = v - static_cast<double>(j);
        const float* low = corners + 3 * (i * n_y + j);
        const float* high = low + 3 * n_y;
        double b[3];
        for (int k = 0; k < 3; ++k) {
            const double at_low = low[k] + (low[k + 3] - low[k]) * upper;
            const double at_high = high[k] + (high[k + 3] - high[k]) * upper;
            b[k] = at_low + (at_high - at_low) * right;
        }
        const double side = x < 0 ? -1.0 : 1.0, half = y < 0 ? -1.0 : 1.0;
        return {b[0] * side * half, b[1], b[2] * half};
    }
};

struct Slopes {
    double x, y;
};

// Change of the slopes by the Lorentz force over a step.
Slopes kick(const Slopes& t, const FieldPlane::Vector& b, double curvature)
{
    const double strength = curvature * std::sqrt(1.0 + t.x * t.x + t.y * t.y);
    return {strength * (t.x * t.y * b.x - (1.0 + t.x * t.x) * b.y + t.y * b.z),
            strength * ((1.0 + t.y * t.y) * b.x - t.x * t.y * b.y - t.x * b.z)};
}

// Columns of flights, as propagation.py explains them.
struct Flights {
    double *x, *y, *z, *tx, *ty;
    const double *p, *charge, *z_end;
};

// One step of the leap-frog kind of a flight: half the way, the whole kick by the field there, the other half.
void move(const Flights& it, std::size_t i, const FieldPlane& plane, double first_z, double last_z,
          double mev_per_tesla_mm, double limit)
{
    // From where it is to the first node a particle flies straight: VELO and decays in it have no field to speak of.
    const double start = std::max(it.z[i], first_z);
    const double length = std::min(last_z, it.z_end[i]) - start;
    const Slopes old{it.tx[i], it.ty[i]};
    const double x = it.x[i] + (start - it.z[i]) * old.x, y = it.y[i] + (start - it.z[i]) * old.y;
    const auto field = plane.at(x + 0.5 * length * old.x, y + 0.5 * length * old.y);
    const double curvature = mev_per_tesla_mm * it.charge[i] / it.p[i] * length;
    const Slopes half = kick(old, field, curvature);
    const Slopes whole = kick({old.x + 0.5 * half.x, old.y + 0.5 * half.y}, field, curvature);
    it.tx[i] = std::clamp(old.x + whole.x, -limit, limit);
    it.ty[i] = std::clamp(old.y + whole.y, -limit, limit);
    it.x[i] = x + 0.5 * length * (old.x + it.tx[i]);
    it.y[i] = y + 0.5 * length * (old.y + it.ty[i]);
    it.z[i] = start + length;
}

// Moves all flights that are on their way by one step. Notes in `there` the rows of those that reach its end, clears
// `alive` of those that are too steep or leave the field's grid, and returns the number of the former.
std::size_t advance(const Column<double>& x, const Column<double>& y, const Column<double>& z, const Column<double>& tx,
                    const Column<double>& ty, const Column<const double>& p, const Column<const double>& charge,
                    const Column<const double>& z_end, const Column<bool>& alive_column,
                    const Column<int64_t>& there_column,
                    const nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>& field, double grid_step,
                    double first_z, double last_z, double mev_per_tesla_mm, double steepest)
{
    const std::size_t n = x.size();
    require(y.size() == n && z.size() == n && tx.size() == n && ty.size() == n && p.size() == n && charge.size() == n &&
                z_end.size() == n && alive_column.size() == n && there_column.size() == n,
            "the columns of flights differ in length");
    require(field.shape(0) > 1 && field.shape(1) > 1 && field.shape(2) == 3, "the field's grid has no square");
    const FieldPlane plane{field.data(), field.shape(0), field.shape(1), 1.0 / grid_step};
    const double end_x = grid_step * static_cast<double>(plane.n_x - 1);
    const double end_y = grid_step * static_cast<double>(plane.n_y - 1);
    const Flights it{x.data(), y.data(), z.data(), tx.data(), ty.data(), p.data(), charge.data(), z_end.data()};
    bool* alive = alive_column.data();
    int64_t* there = there_column.data();
    std::size_t n_there = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (!alive[i] || it.z[i] >= last_z || it.z_end[i] <= it.z[i]) continue;
        move(it, i, plane, first_z, last_z, mev_per_tesla_mm, 2.0 * steepest);
        alive[i] = std::abs(it.tx[i]) <= steepest && std::abs(it.ty[i]) <= steepest && std::abs(it.x[i]) <= end_x &&
                   std::abs(it.y[i]) <= end_y;
        if (alive[i] && it.z[i] >= last_z) there[n_there++] = static_cast<int64_t>(i);
    }
    return n_there;
}

// Where the clusters of strip_clusters.py go: each array has room for as many as there are deposits.
struct ClusterColumns {
    int64_t *first, *size;
    double *charge, *position, *channel_charge;
    int64_t* of_deposit;
    std::size_t n = 0, n_channels = 0;
};

// Neighbouring channels above the threshold, while more may follow.
class OpenCluster {
  public:
    explicit OpenCluster(int64_t first) : first_(first), end_(first) {}
    bool reaches(int64_t channel) const { return channel == end_; }

    void add(double charge, double* channel_charge)
    {
        channel_charge[end_ - first_] = charge;
        sum_ += charge;
        weighted_ += charge * static_cast<double>(end_ - first_);
        largest_ = std::max(largest_, charge);
        ++end_;
    }

    // Writes the cluster down if it is good; returns its number, or -1.
    int64_t close(ClusterColumns& out, double seed, double total) const
    {
        if (largest_ < seed || sum_ < total) return -1;
        out.first[out.n] = first_;
        out.size[out.n] = end_ - first_;
        out.charge[out.n] = sum_;
        out.position[out.n] = weighted_ / sum_;
        out.n_channels += static_cast<std::size_t>(end_ - first_);
        return static_cast<int64_t>(out.n++);
    }

  private:
    int64_t first_, end_;
    double sum_ = 0, weighted_ = 0, largest_ = 0;
};

// Clusters of deposits whose channels are `sorted`; `order` tells where each stands in `charge` and `of_deposit`.
// Returns the number of clusters and of their channels.
nb::tuple cluster(const Column<const int64_t>& order, const Column<const int64_t>& sorted,
                  const Column<const double>& charge, double threshold, double seed, double total,
                  const Column<int64_t>& first, const Column<int64_t>& size, const Column<double>& cluster_charge,
                  const Column<double>& position, const Column<double>& channel_charge,
                  const Column<int64_t>& of_deposit)
{
    const std::size_t n = sorted.size();
    require(order.size() == n && charge.size() == n && first.size() == n && size.size() == n &&
                cluster_charge.size() == n && position.size() == n && channel_charge.size() == n &&
                of_deposit.size() == n,
            "the columns of deposits differ in length");
    ClusterColumns out{first.data(),    size.data(),           cluster_charge.data(),
                       position.data(), channel_charge.data(), of_deposit.data()};
    {
        const nb::gil_scoped_release without_gil;
        for (std::size_t i = 0; i < n; ++i)
            require(order.data()[i] >= 0 && static_cast<std::size_t>(order.data()[i]) < n, "no such deposit");
        std::fill_n(out.of_deposit, n, int64_t{-1});
        OpenCluster open(0);
        std::size_t begin = 0, end = 0;  // deposits of the open cluster
        const auto close = [&] {
            if (begin == end) return;
            const int64_t number = open.close(out, seed, total);
            for (; begin < end; ++begin) out.of_deposit[order.data()[begin]] = number;
        };
        for (std::size_t i = 0; i < n;) {
            const int64_t channel = sorted.data()[i];
            const std::size_t start = i;
            double sum = 0;
            for (; i < n && sorted.data()[i] == channel; ++i) sum += charge.data()[order.data()[i]];
            if (sum < threshold) continue;
            if (begin == end || !open.reaches(channel)) {
                close();
                open = OpenCluster(channel);
                begin = start;
            }
            open.add(sum, out.channel_charge + out.n_channels);
            end = i;
        }
        close();
    }
    return nb::make_tuple(out.n, out.n_channels);
}

}  // namespace

NB_MODULE(_native, module)
{
    module.doc() = "Loops of the simulation";
    module.def("advance", &advance, nb::arg("x"), nb::arg("y"), nb::arg("z"), nb::arg("tx"), nb::arg("ty"),
               nb::arg("p"), nb::arg("charge"), nb::arg("z_end"), nb::arg("alive"), nb::arg("there"), nb::arg("field"),
               nb::arg("grid_step"), nb::arg("first_z"), nb::arg("last_z"), nb::arg("mev_per_tesla_mm"),
               nb::arg("steepest"), nb::call_guard<nb::gil_scoped_release>(),
               "Move flights by one step; returns how many reach its end, whose rows stand in `there`");
    module.def("cluster", &cluster, nb::arg("order"), nb::arg("sorted"), nb::arg("charge"), nb::arg("threshold"),
               nb::arg("seed"), nb::arg("total"), nb::arg("first"), nb::arg("size"), nb::arg("cluster_charge"),
               nb::arg("position"), nb::arg("channel_charge"), nb::arg("of_deposit"),
               "Clusters of deposits sorted by channel; returns the number of clusters and of their channels");
}
