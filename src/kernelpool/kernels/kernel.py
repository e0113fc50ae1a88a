r"""What a kernel family is to networks, penalties and starts.

.. math:: \log p(x \mid j) = \text{offset}_j + \text{weight}_j \cdot \phi(x) + \text{common}(x)

A family is an exponential family: a feature map :math:`\phi`, natural parameters for every set of
kernels, and the way back from sums of features, weighted by responsibility, to the most likely
kernels. With these the log-densities of all kernels are one matrix product, and so are the sums
from which they are estimated. The parameters of M kernels are a frozen record of arrays that the
family defines; nothing outside the family looks into it.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from ..arrays import Array, empty
from ..errors import KernelpoolError
from ..rows import Block, Frame
from ..sums import Sums, record

Parameters = Any
"""The record of a family's parameters: `Kernels(mean, covariance)` in the Gaussian families."""

Natural = Any
"""Its `NaturalParams`, or the extension of them that the family defines."""

Prior = Any
"""The record of what penalties add to a family's statistics: `PriorStatistics` in the Gaussian
families.
"""


@record
class NaturalParams:
    """Kernels as the E-step needs them: log p(x|j) = offset + weight . features(x)."""

    weight: Array
    """(M, P)."""
    offset: Array
    """(M,)."""
    guarded: tuple[int, ...]
    """The kernels for which that sum would cancel; `Kernel.correct` computes them in another
    way.
    """
    moment_origin: Array
    """The points about which moments are taken, (M, d)."""


@record
class KernelSums(Sums):
    """Sums over rows, weighted by responsibility, from which kernels are estimated; a family adds
    its own to the mass.
    """

    mass: Array
    """By kernel and class, (M, K)."""


class Observed(ABC):
    """What kernels say of the rows of one block by the cells that are known: the others are
    integrated out.
    """

    log_density: Array
    """log p(known cells|j), (M, n)."""

    @abstractmethod
    def moments(self, mass: Array, responsibility: Array) -> Any:
        """The `KernelSums` of the block, each missing cell as kernel j expects it given the cells
        that are known.

        `mass` is by kernel and class. Responsibilities (M, n) may be negative: with signed ones
        these moments are the gradient of `log_density` by the natural parameters (Fisher's
        identity), as those of complete rows are.
        """

    @abstractmethod
    def fill(self, share: Array, noise: Array | None = None) -> Array:
        """The rows with their missing cells filled, (n, d): by what each kernel expects of them,
        weighted by `share` (M, n).

        With standard normal `noise` (n, d) each kernel draws them instead; a share is then one for
        one kernel of each row.
        """


class Kernel(ABC):
    """A family of kernels, p(x|j)."""

    name: ClassVar[str]
    equivariant: ClassVar[bool] = True
    """Whether the family is closed under scaling the features one by one."""

    # -- the model ---------------------------------------------------------------------------------

    @abstractmethod
    def n_features(self, d: int) -> int:
        """P, the width of the feature map."""

    @abstractmethod
    def write_features(self, out: Array, block: Block) -> None:
        """phi(x) without its constant, written into `out` (P, n)."""

    def features(self, x: Array) -> Array:
        """phi(x) without its constant, (P, n), from rows (n, d)."""
        out = empty((self.n_features(x.shape[1]), x.shape[0]), x)
        self.write_features(out, Block(x))
        return out

    def factors(self, block: Block) -> tuple[Array, tuple[tuple[int, int], ...]] | None:
        """The features as products of two columns each: columns (c, n), and for each feature the
        two it is made of.

        The column c, past the last one, stands for one. None where features are more than that.
        """
        return None

    @abstractmethod
    def natural_params(self, kernels: Parameters, eps: float) -> NaturalParams:
        """The kernels in natural parameters; `eps` is the spacing of the rows' float type."""

    def log_density(self, natural_params: Natural, x: Array) -> Array:
        """log p(x|j), (M, n)."""
        log_density = natural_params.weight @ self.features(x)
        log_density += natural_params.offset[:, None]
        self.correct(log_density, natural_params, x, natural_params.offset)
        return log_density + self.common(natural_params, x)

    def common(self, natural_params: Natural, x: Array) -> Array | float:
        """The part of log p(x|j) that is the same for every kernel and left out of the features,
        (n,).
        """
        return 0.0

    def correct(  # noqa: B027
        self,
        log_joint: Array,
        natural_params: Natural,
        x: Array,
        constant: Array | None,
        index: Array | None = None,
    ) -> None:
        """Completes `log_joint`, constants + weight . features(x), (M, n), in place.

        Guarded kernels get their exact values, with `constant`, (M,) or (M, n), in place of
        `offset`. What is looked up in tables is added. With `index` (m,) the rows of `log_joint`
        are those kernels, none of which is guarded.
        """

    def observe(self, natural_params: Natural, block: Block) -> Observed:
        """The kernels beside a block whose rows have missing cells."""
        raise KernelpoolError(
            f"X has missing values, and the kernel family {self.name!r} does not say how they are "
            "integrated out: define its `observe`, or impute them first."
        )

    @abstractmethod
    def log_peak(self, kernels: Parameters) -> Array:
        """The largest value of log p(x|j), (M,)."""

    # -- estimation --------------------------------------------------------------------------------

    @abstractmethod
    def sums(self, phi: Array, x: Array, responsibility: Array) -> Array:
        """phi @ responsibility', (..., M); the last rows of `phi` are the features of `x`, whatever
        stands before them.

        Responsibilities may be negative. A family with tables adds rows for what it counts.
        """

    @abstractmethod
    def moments(
        self, mass: Array, sums: Array, natural_params: Natural, x: Array, responsibility: Array
    ) -> Any:
        """The `KernelSums` of one block; `sums` (P, M) is features @ responsibility'."""

    @abstractmethod
    def with_pseudocounts(
        self, moments: Any, moment_origin: Array, vanished: Array, kernels: Parameters, mass: float
    ) -> Any:
        """Moments in which the `vanished` kernels (M,) have a trace of `mass` that keeps them as
        they are.
        """

    @abstractmethod
    def estimate(
        self, moments: Any, moment_origin: Array, prior: Prior | None = None
    ) -> Parameters:
        """The most likely kernels, from moments about `moment_origin` and what a prior adds to
        them.
        """

    # -- coordinates -------------------------------------------------------------------------------

    @abstractmethod
    def coordinates(self, kernels: Parameters) -> Array:
        """The parameters as one vector, (C,); every vector is some set of kernels."""

    @abstractmethod
    def at(self, coordinates: Array, like: Parameters) -> Parameters:
        """The kernels at `coordinates`, in the shapes of `like`."""

    @abstractmethod
    def pullback(self, kernels: Parameters, moments: Any, moment_origin: Array) -> Array:
        """Gradient by `coordinates`, (C,), of sum_jn s_jn log p(x_n|j), from the moments with s in
        place of responsibility.

        These moments are the gradient by the natural parameters: `pullback` is the chain rule.
        """

    # -- kernels as such ---------------------------------------------------------------------------

    @abstractmethod
    def n_parameters(self, n_kernels: int, d: int) -> int:
        """Free numbers in `n_kernels` kernels."""

    @abstractmethod
    def take(self, kernels: Parameters, index: Array) -> Parameters:
        """The kernels at the positions `index`."""

    @abstractmethod
    def move(self, kernels: Parameters, to: dict[int, Array]) -> Parameters:
        """The kernels with some moved to rows (d,); those get the mean shape of all kernels."""

    def embed(self, x: Array) -> Array:
        """Rows as starts see them, (n, e): in a space in which distances mean something."""
        return x

    @abstractmethod
    def place(self, groups: list[tuple[Array, Array, Array]]) -> Parameters:
        """First kernels, group after group.

        A group is the centers of its kernels (m, e), the deviations of its rows from the points
        they belong to (n, e), both in the space of `embed`, and the weights of its rows (n,):
        kernels are as wide as the rows of their group on average.
        """

    def tempered(self, kernels: Parameters, beta: float) -> Parameters:
        """The kernels whose densities are those of `kernels` to the power of `beta`, but for a
        constant.
        """
        raise KernelpoolError(
            f"Conditional training needs kernels to the power of beta; the family {self.name!r} "
            f"has none."
        )

    def shrunk(self, kernels: Parameters, share: Array, strength: float) -> Parameters:
        """The kernels with shapes nearer to what all of them have in common; `share` (M,) is the
        weight of each.
        """
        return kernels

    @abstractmethod
    def given(
        self, kernels: Parameters, known: list[int], rest: list[int], x: Array | None
    ) -> tuple["Kernel", Parameters]:
        """The family and the kernels of p(x_rest|x_known, j)."""

    def marginal(self, kernels: Parameters, columns: list[int]) -> tuple["Kernel", Parameters]:
        """The family and the kernels of p(x_columns|j)."""
        return self.given(kernels, [], columns, None)

    @abstractmethod
    def sample(self, kernels: Parameters, j: int, n: int, rng: Any) -> Array:
        """`n` rows of kernel j, (n, d), drawn with a NumPy generator."""

    @abstractmethod
    def into(self, kernels: Parameters, frame: Frame) -> Parameters:
        """Kernels given in the units of the data, in the frame."""

    @abstractmethod
    def out_of(self, kernels: Parameters, frame: Frame) -> Parameters:
        """Kernels of the frame, in the units of the data."""
