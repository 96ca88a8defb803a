from .bounds import bracket as bracket
from .certificate import certify as certify
from .curve import Curve as Curve
from .derivation import derive as derive
from .exact import influence as influence
from .exact import influence_ball as influence_ball
from .exact import influence_fraction as influence_fraction
from .exact import local_exponent as local_exponent
from .exact import rms_influence as rms_influence
from .exact import token_influence as token_influence
from .inference import compare_laws as compare_laws
from .inference import estimate_exponent as estimate_exponent
from .inference import extrapolate_exponent as extrapolate_exponent
from .inference import fit as fit
from .inference import fit_power_law as fit_power_law
from .many import sweep as sweep
from .model import Head as Head
from .model import Layer as Layer
from .model import RelayModel as RelayModel
from .model.profile import fit_heads as fit_heads
from .networks.protocol import Pairs as Pairs
from .networks.protocol import measure as measure
from .report import reproduce as reproduce
from .simulation import PromptBias as PromptBias
from .simulation import Reminders as Reminders
from .simulation import simulate as simulate
from .simulation import token_weights as token_weights

__version__: str
__bibtex__: str
