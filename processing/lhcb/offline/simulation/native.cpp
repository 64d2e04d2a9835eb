// Python extension hltnode.processing.lhcb.offline.simulation._native: the loops of the simulation that are slow in
// NumPy, because they have many short steps (flights in the field) or a state that passes from one element to the next
// (clusters).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

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
        // In this order std::min takes the bound for nan, too.
        const double u = std::min(static_cast<double>(n_x) - 1.001, std::abs(x) * squares_per_mm);
        const double v = std::min(static_cast<double>(n_y) - 1.001, std::abs(y) * squares_per_mm);
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

// One leap-frog step of a flight: half the way, the whole kick by the field at that point, the other half.
void move(const Flights& it, std::size_t i, const FieldPlane& plane, double first_z, double last_z,
          double mev_per_tesla_mm, double limit)
{
    // To the first node a particle moves in a straight line: the field is negligible in the VELO.
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

// Moves all flights that have not ended by one step. Stores in `there` the rows of those that reach its end, clears
// `moving` of those that are too steep or leave the field's grid, and returns the number of the former.
std::size_t advance(const Column<double>& x, const Column<double>& y, const Column<double>& z, const Column<double>& tx,
                    const Column<double>& ty, const Column<const double>& p, const Column<const double>& charge,
                    const Column<const double>& z_end, const Column<bool>& moving_column,
                    const Column<int64_t>& there_column,
                    const nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>& field, double grid_step,
                    double first_z, double last_z, double mev_per_tesla_mm, double steepest)
{
    const std::size_t n = x.size();
    require(y.size() == n && z.size() == n && tx.size() == n && ty.size() == n && p.size() == n && charge.size() == n &&
                z_end.size() == n && moving_column.size() == n && there_column.size() == n,
            "the columns of flights differ in length");
    require(field.shape(0) > 1 && field.shape(1) > 1 && field.shape(2) == 3, "the field's grid has no square");
    const FieldPlane plane{field.data(), field.shape(0), field.shape(1), 1.0 / grid_step};
    const double end_x = grid_step * static_cast<double>(plane.n_x - 1);
    const double end_y = grid_step * static_cast<double>(plane.n_y - 1);
    const Flights it{x.data(), y.data(), z.data(), tx.data(), ty.data(), p.data(), charge.data(), z_end.data()};
    bool* moving = moving_column.data();
    int64_t* there = there_column.data();
    std::size_t n_there = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (!moving[i] || it.z[i] >= last_z || it.z_end[i] <= it.z[i]) continue;
        move(it, i, plane, first_z, last_z, mev_per_tesla_mm, 2.0 * steepest);
        moving[i] = std::abs(it.tx[i]) <= steepest && std::abs(it.ty[i]) <= steepest && std::abs(it.x[i]) <= end_x &&
                    std::abs(it.y[i]) <= end_y;
        if (moving[i] && it.z[i] >= last_z) there[n_there++] = static_cast<int64_t>(i);
    }
    return n_there;
}

// An array of rows of `width` values, owned by Python.
template <typename T>
nb::ndarray<nb::numpy, T> owned(std::vector<T>&& values, std::size_t width)
{
    auto* kept = new std::vector<T>(std::move(values));
    const nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
    const std::size_t shape[2] = {kept->size() / width, width};
    return nb::ndarray<nb::numpy, T>(kept->data(), width == 1 ? 1 : 2, shape, owner);
}

// Shares the charge of deposits evenly over the channels (k reaches from k to k + 1) that their width around the centre
// covers; charge beyond the n channels, and shares up to `least`, are lost. Returns the deposit, channel and
// charge of each share.
nb::tuple share(const Column<const double>& centre, const Column<const double>& width,
                const Column<const double>& charge, int64_t n_channels, double least)
{
    const std::size_t n = centre.size();
    require(width.size() == n && charge.size() == n, "the columns of deposits differ in length");
    std::vector<int64_t> deposit, channel;
    std::vector<double> part;
    {
        const nb::gil_scoped_release without_gil;
        for (std::size_t i = 0; i < n; ++i) {
            const double low = centre.data()[i] - 0.5 * width.data()[i], high = low + width.data()[i];
            const double first = std::max(std::floor(low), 0.0), end = std::min(high, static_cast<double>(n_channels));
            for (double k = first; k < end; k += 1.0) {
                const double covered = std::min(k + 1.0, high) - std::max(k, low);
                const double amount = covered / width.data()[i] * charge.data()[i];
                if (!(amount > least)) continue;
                deposit.push_back(static_cast<int64_t>(i));
                channel.push_back(static_cast<int64_t>(k));
                part.push_back(amount);
            }
        }
    }
    return nb::make_tuple(owned(std::move(deposit), 1), owned(std::move(channel), 1), owned(std::move(part), 1));
}

// Clusters as strip_clusters.py explains them.
struct ClusterColumns {
    std::vector<int64_t> first, size;
    std::vector<double> charge, position, channel_charge;
    std::vector<int64_t> of_deposit;
};

// Neighbouring channels above the threshold; more may follow.
class OpenCluster {
  public:
    explicit OpenCluster(std::size_t longest) : longest_(longest) {}

    bool reaches(int64_t channel) const { return !charges_.empty() && channel == end() && charges_.size() < longest_; }

    void open(int64_t first)
    {
        first_ = first;
        charges_.clear();
    }

    void add(double charge) { charges_.push_back(charge); }

    // Stores the cluster if it passes the thresholds; returns its number, or -1.
    int64_t close(ClusterColumns& out, double seed, double total) const
    {
        double sum = 0, weighted = 0, largest = 0;
        for (std::size_t k = 0; k < charges_.size(); ++k) {
            sum += charges_[k];
            weighted += charges_[k] * static_cast<double>(k);
            largest = std::max(largest, charges_[k]);
        }
        if (largest < seed || sum < total) return -1;
        out.first.push_back(first_);
        out.size.push_back(end() - first_);
        out.charge.push_back(sum);
        out.position.push_back(weighted / sum);
        out.channel_charge.insert(out.channel_charge.end(), charges_.begin(), charges_.end());
        return static_cast<int64_t>(out.first.size()) - 1;
    }

  private:
    int64_t end() const { return first_ + static_cast<int64_t>(charges_.size()); }

    std::size_t longest_;
    int64_t first_ = 0;
    std::vector<double> charges_;
};

// Clusters of deposits whose channels are `sorted`; `order` is the index of each in `charge`. Returns the columns of
// strip_clusters.Clusters.
nb::tuple cluster(const Column<const int64_t>& order_column, const Column<const int64_t>& sorted_column,
                  const Column<const double>& charge, double threshold, double seed, double total, std::size_t longest)
{
    const std::size_t n = sorted_column.size();
    const int64_t *order = order_column.data(), *sorted = sorted_column.data();
    require(order_column.size() == n && charge.size() == n, "the columns of deposits differ in length");
    require(std::all_of(order, order + n, [n](int64_t i) { return i >= 0 && static_cast<std::size_t>(i) < n; }),
            "the order names a deposit that is not there");
    ClusterColumns out;
    {
        const nb::gil_scoped_release without_gil;
        out.of_deposit.assign(n, -1);
        OpenCluster open(longest);
        std::size_t begin = 0, end = 0;  // deposits of the open cluster
        const auto close = [&] {
            if (begin == end) return;
            const int64_t number = open.close(out, seed, total);
            for (; begin < end; ++begin) out.of_deposit[static_cast<std::size_t>(order[begin])] = number;
        };
        for (std::size_t i = 0; i < n;) {
            const int64_t channel = sorted[i];
            const std::size_t start = i;
            double sum = 0;
            for (; i < n && sorted[i] == channel; ++i) sum += charge.data()[order[i]];
            if (sum < threshold) continue;
            if (begin == end || !open.reaches(channel)) {
                close();
                open.open(channel);
                begin = start;
            }
            open.add(sum);
            end = i;
        }
        close();
    }
    return nb::make_tuple(owned(std::move(out.first), 1), owned(std::move(out.size), 1),
                          owned(std::move(out.charge), 1), owned(std::move(out.position), 1),
                          owned(std::move(out.channel_charge), 1), owned(std::move(out.of_deposit), 1));
}

using Table = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Where straight lines x = ax + bx z, y = ay + by z (rows ax, bx, ay, by, first z, last z of `lines`) cross sensors of
// rising z, in the order of flight. Row s of `to_x` and `to_y` makes the place on sensor s, from its centre, of
// (ax, bx, ay, by, 1). Returns the line, the sensor and the place from the sensor's corner of each crossing.
nb::tuple crossings(const Table& lines, const Column<const double>& z, const Table& to_x, const Table& to_y,
                    double half_length, double half_width)
{
    const std::size_t n_sensors = z.size();
    require(lines.shape(1) == 6 && to_x.shape(1) == 5 && to_y.shape(1) == 5 && to_x.shape(0) == n_sensors &&
                to_y.shape(0) == n_sensors,
            "tables of crossings do not fit");
    std::vector<int64_t> line, sensor;
    std::vector<double> place;
    {
        const nb::gil_scoped_release without_gil;
        const auto at = [](const double* to, const double* l) {
            return to[0] * l[0] + to[1] * l[1] + to[2] * l[2] + to[3] * l[3] + to[4];
        };
        for (std::size_t i = 0; i < lines.shape(0); ++i) {
            const double* l = lines.data() + 6 * i;
            const auto low = std::upper_bound(z.data(), z.data() + n_sensors, std::min(l[4], l[5])) - z.data();
            const auto high = std::lower_bound(z.data(), z.data() + n_sensors, std::max(l[4], l[5])) - z.data();
            for (auto k = low; k < high; ++k) {
                const auto s = l[4] < l[5] ? k : low + high - 1 - k;
                const double x = at(to_x.data() + 5 * s, l);
                if (!(std::abs(x) < half_length)) continue;
                const double y = at(to_y.data() + 5 * s, l);
                if (!(std::abs(y) < half_width)) continue;
                line.push_back(static_cast<int64_t>(i));
                sensor.push_back(static_cast<int64_t>(s));
                place.insert(place.end(), {x + half_length, y + half_width});
            }
        }
    }
    return nb::make_tuple(owned(std::move(line), 1), owned(std::move(sensor), 1), owned(std::move(place), 2));
}

}  // namespace

NB_MODULE(_native, module)
{
    // What lives until the process ends is reported as a leak otherwise.
    nb::set_leak_warnings(false);
    module.doc() = "Loops of the simulation";
    // Arrays that are written to must not be converted copies.
    module.def("advance", &advance, nb::arg("x").noconvert(), nb::arg("y").noconvert(), nb::arg("z").noconvert(),
               nb::arg("tx").noconvert(), nb::arg("ty").noconvert(), nb::arg("p"), nb::arg("charge"), nb::arg("z_end"),
               nb::arg("moving").noconvert(), nb::arg("there").noconvert(), nb::arg("field"), nb::arg("grid_step"),
               nb::arg("first_z"), nb::arg("last_z"), nb::arg("mev_per_tesla_mm"), nb::arg("steepest"),
               nb::call_guard<nb::gil_scoped_release>(),
               "Move flights by one step; returns how many reach its end, whose rows are in `there`");
    module.def("crossings", &crossings, nb::arg("lines"), nb::arg("z"), nb::arg("to_x"), nb::arg("to_y"),
               nb::arg("half_length"), nb::arg("half_width"),
               "Line, sensor and place of the crossings of straight lines with sensors");
    module.def("share", &share, nb::arg("centre"), nb::arg("width"), nb::arg("charge"), nb::arg("n_channels"),
               nb::arg("least"), "Deposit, channel and charge of the shares that channels have of deposits");
    module.def("cluster", &cluster, nb::arg("order"), nb::arg("sorted"), nb::arg("charge"), nb::arg("threshold"),
               nb::arg("seed"), nb::arg("total"), nb::arg("longest"), "Clusters of deposits sorted by channel");
}
